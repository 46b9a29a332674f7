import { Anchor, Table, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import type { RunRow } from '@/api/types';
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
  const columns = columnsOf(metrics).filter((column) => SHOWN.includes(column.key));
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
      <div style={{ overflowX: 'auto' }}>
        <Table data-testid="recent-runs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th miw={190}>Run</Table.Th>
              {columns.map(({ key, title, numeric }) => (
                <Table.Th key={key} ta={numeric ? 'right' : undefined}>
                  {title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {runs.slice(0, MANY).map((run) => (
              <Table.Tr key={run.id}>
                <Table.Td>
                  <Anchor component={Link} to={`/runs/${run.id}`} size="sm" fw={500}>
                    <Text span inherit c="dimmed" fw={400}>
                      {run.id}
                    </Text>{' '}
                    {run.name}
                  </Anchor>
                </Table.Td>
                {columns.map(({ key, numeric, cell }) => (
                  <Table.Td key={key} ta={numeric ? 'right' : undefined} style={{ whiteSpace: 'nowrap' }}>
                    {cell(run, now)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </Panel>
  );
}
