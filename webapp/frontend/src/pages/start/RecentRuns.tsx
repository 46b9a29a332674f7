import { Anchor, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import type { RunRow } from '@/api/types';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { useNow } from '@/components/useNow';
import { useMetrics } from '@/api/queries';
import { columnsOf } from '@/run/table/columns';

const SHOWN = [
  'status',
  'cluster_name',
  'model',
  'strategy',
  'ttft_s',
  'tpot_s',
  'latency_s',
  'tokens_per_s',
  'verdicts',
  'created_at',
];
const MANY = 6;

/** The newest of these runs; renders nothing if there is none. */
export function RecentRuns({ runs }: { runs: readonly RunRow[] }) {
  const now = useNow();
  const metrics = useMetrics();
  if (runs.length === 0) return null;
  const shown = columnsOf(metrics).filter(({ key }) => SHOWN.includes(key));
  return (
    <Panel
      title="Recent runs"
      testId="recent"
      flush
      extra={
        <Anchor component={Link} to="/runs" size="sm">
          All runs
        </Anchor>
      }
    >
      <DataTable
        data-testid="recent-runs"
        minWidth={0}
        rows={runs.slice(0, MANY)}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'Run',
            minWidth: 190,
            cell: ({ id, name }) => (
              <Anchor component={Link} to={`/runs/${id}`} size="sm" fw={500}>
                <Text span inherit c="dimmed" fw={400}>
                  {id}
                </Text>{' '}
                {name}
              </Anchor>
            ),
          },
          ...shown.map(({ title, numeric = false, cell }) => ({
            head: title,
            right: numeric,
            look: { style: { whiteSpace: 'nowrap' as const } },
            cell: (run: RunRow) => cell(run, now),
          })),
        ]}
      />
    </Panel>
  );
}
