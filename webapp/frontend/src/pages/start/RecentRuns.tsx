import { Anchor, Card, Group, Table, Text, Title } from '@mantine/core';
import { Link } from 'react-router';
import { useRuns } from '@/api/queries';
import { useNow } from '@/components/useNow';
import { COLUMNS } from '@/run/table/columns';

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

/** The newest runs; renders nothing if there is none. */
export function RecentRuns() {
  const runs = useRuns().data;
  const now = useNow();
  if (!runs?.length) return null;
  const columns = COLUMNS.filter((column) => SHOWN.includes(column.key));
  return (
    <section>
      <Group justify="space-between" mb="sm">
        <Title order={2} fz={18}>
          Recent runs
        </Title>
        <Anchor component={Link} to="/runs" size="sm">
          All runs
        </Anchor>
      </Group>
      <Card padding={0}>
        <div style={{ overflowX: 'auto' }}>
          <Table data-testid="recent-runs">
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Run</Table.Th>
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
      </Card>
    </section>
  );
}
