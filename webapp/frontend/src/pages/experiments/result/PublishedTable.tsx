import { Table } from '@mantine/core';
import { Panel } from '@/components/Panel';
import type { PublishedAnswer } from '@/experiment/data/answers';
import { labelOf } from '@/experiment/data/design';
import type { Factor } from '@/experiment/data/types';
import { metricText } from '@/format/metrics';
import { percent } from '@/format/units';
import classes from './result.module.css';

/** A paper's values beside ours, with the deviation of ours. */
export function PublishedTable({
  rows,
  factors,
}: {
  rows: readonly PublishedAnswer[];
  factors: readonly Factor[];
}) {
  if (rows.length === 0) return null;
  const near = rows.filter(({ deviation }) => deviation !== null && Math.abs(deviation) <= 0.1).length;
  return (
    <Panel title="Published values" about={`${near} of ${rows.length} within 10 %`} testId="published" flush>
      <Table.ScrollContainer minWidth={720} mah={420}>
        <Table className={classes.table} verticalSpacing={5} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Where</Table.Th>
              <Table.Th>Of</Table.Th>
              <Table.Th>World</Table.Th>
              <Table.Th ta="right">Published</Table.Th>
              <Table.Th ta="right">Ours</Table.Th>
              <Table.Th ta="right">Deviation</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row, at) => (
              <Table.Tr key={`${row.id} ${row.world} ${at}`}>
                <Table.Td>{row.where}</Table.Td>
                <Table.Td>
                  {Object.entries(row.coordinates)
                    .map(([name, value]) => labelOf(factors, name, value))
                    .join(', ')}
                </Table.Td>
                <Table.Td>{row.world}</Table.Td>
                <Table.Td ta="right">{publishedText(row)}</Table.Td>
                <Table.Td ta="right">{oursText(row)}</Table.Td>
                <Table.Td ta="right">
                  {row.deviation === null ? agreement(row) : percent(row.deviation)}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

const SIGN: Readonly<Record<string, string>> = { about: '≈ ', at_most: '≤ ', at_least: '≥ ' };

function publishedText(row: PublishedAnswer): string {
  const { published, published_low, published_high, published_outcome, unit, bound } = row;
  if (published !== null) return `${SIGN[bound] ?? ''}${metricText(published, unit)}`;
  if (published_low !== null && published_high !== null)
    return `${metricText(published_low, unit)} – ${metricText(published_high, unit)}`;
  return published_outcome.replaceAll('_', ' ');
}

function oursText({ ours, unit, problem, outcomes }: PublishedAnswer): string {
  if (ours !== null) return metricText(ours, unit);
  return outcomes.map((outcome) => outcome.replaceAll('_', ' ')).join(', ') || problem;
}

function agreement({ agrees }: PublishedAnswer): string {
  if (agrees === null) return '–';
  return agrees ? 'agrees' : 'differs';
}
