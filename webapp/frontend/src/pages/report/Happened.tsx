import { Table } from '@mantine/core';
import type { RunDetail } from '@/api/types';
import { Panel } from '@/components/Panel';
import { maybe, percent, seconds } from '@/format/units';
import type { RunData } from '@/run/data/runData';
import { happenings } from './happenings';
import classes from './report.module.css';

/** Every change of the cluster and of the plan: when, what, who made it, and the time of a token before and after. */
export function Happened({ run, data }: { run: RunDetail; data: RunData | undefined }) {
  const rows = happenings(run.finding?.changes ?? [], data);
  if (rows.length === 0) return null;
  const isKnownBy = rows.some(({ by }) => by !== '');
  return (
    <Panel
      title="What happened"
      about="a token takes: the median of up to 12 on either side"
      testId="happened"
      flush
    >
      <Table.ScrollContainer minWidth={760}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th ta="right" w={100}>
                at
              </Table.Th>
              <Table.Th>change</Table.Th>
              {isKnownBy && <Table.Th>by</Table.Th>}
              <Table.Th ta="right">a token before</Table.Th>
              <Table.Th ta="right">after</Table.Th>
              <Table.Th ta="right">worst</Table.Th>
              <Table.Th ta="right">effect</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map(({ key, time_s, label, by, effect }) => (
              <Table.Tr key={key} data-testid="happening">
                <Table.Td ta="right">{seconds(time_s)}</Table.Td>
                <Table.Td fw={500}>{label}</Table.Td>
                {isKnownBy && <Table.Td c="dimmed">{by}</Table.Td>}
                <Table.Td ta="right">{maybe(effect?.before_s, seconds)}</Table.Td>
                <Table.Td ta="right">{maybe(effect?.after_s, seconds)}</Table.Td>
                <Table.Td ta="right">{maybe(effect?.worst_s, seconds)}</Table.Td>
                <Table.Td ta="right">{effect ? changeText(effect.after_s / effect.before_s) : '–'}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

/** "+90 %"; "none" below 5 %, as in the report's sentences. */
function changeText(ratio: number): string {
  if (!Number.isFinite(ratio)) return '–';
  if (Math.max(ratio, 1 / ratio) < 1.05) return 'none';
  return `${ratio > 1 ? '+' : '−'}${percent(Number(Math.abs(ratio - 1).toFixed(2)))}`;
}
