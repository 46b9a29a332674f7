import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import type { PublishedAnswer } from '@/experiment/data/answers';
import { labelOf } from '@/experiment/data/design';
import type { Factor } from '@/experiment/data/types';
import { metricText } from '@/format/metrics';
import { percent } from '@/format/units';

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
      <DataTable
        flush
        minWidth={720}
        maxHeight={420}
        verticalSpacing={5}
        rows={rows}
        keyOf={({ id, world }, at) => `${id} ${world} ${at}`}
        columns={[
          { head: 'Where', cell: ({ where }) => where },
          {
            head: 'Of',
            cell: ({ coordinates }) =>
              Object.entries(coordinates)
                .map(([name, value]) => labelOf(factors, name, value))
                .join(', '),
          },
          { head: 'World', cell: ({ world }) => world },
          { head: 'Published', right: true, cell: publishedText },
          { head: 'Ours', right: true, cell: oursText },
          {
            head: 'Deviation',
            right: true,
            cell: (row) => (row.deviation === null ? agreement(row) : percent(row.deviation)),
          },
        ]}
      />
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
