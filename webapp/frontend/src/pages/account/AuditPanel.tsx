import { Button, Group, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { api, sentence } from '@/api/client';
import type { Schemas } from '@/api/types/schemas';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Panel } from '@/components/Panel';
import { useNow } from '@/components/useNow';
import { ago } from '@/format/units';

type AuditRow = Schemas['AuditRow'];
const ROWS = 25;

/** Who logged in, changed and deleted what; for administrators. */
export function AuditPanel() {
  const now = useNow();
  const log = useInfiniteQuery({
    queryKey: ['account', 'audit'],
    queryFn: ({ pageParam, signal }) =>
      api.get<AuditRow[]>(`/audit?limit=${ROWS}${pageParam ? `&before=${pageParam}` : ''}`, signal),
    initialPageParam: 0,
    getNextPageParam: (page) => (page.length < ROWS ? undefined : page.at(-1)?.id),
  });
  const rows = log.data?.pages.flat() ?? [];
  return (
    <Panel title="Log" about="log-ins, live changes, deletions" testId="audit" flush>
      {log.isError && <ErrorPanel message={sentence(log.error)} onRetry={() => void log.refetch()} />}
      <Table.ScrollContainer minWidth={600}>
        <Table horizontalSpacing="md">
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={170}>When</Table.Th>
              <Table.Th w={190}>Who</Table.Th>
              <Table.Th w={190}>Action</Table.Th>
              <Table.Th>Object</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.id}>
                <Table.Td title={new Date(row.at).toLocaleString()}>{ago(row.at, now)}</Table.Td>
                <Table.Td>{row.who}</Table.Td>
                <Table.Td>{row.action}</Table.Td>
                <Table.Td>
                  <Text size="sm" className="mono" style={{ overflowWrap: 'anywhere' }}>
                    {row.what}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {log.hasNextPage && (
        <Group justify="center" p="sm">
          <Button
            size="compact-sm"
            variant="default"
            loading={log.isFetchingNextPage}
            onClick={() => void log.fetchNextPage()}
          >
            Older
          </Button>
        </Group>
      )}
    </Panel>
  );
}
