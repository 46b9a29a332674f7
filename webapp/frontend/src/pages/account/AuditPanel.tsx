import { Button, Group, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { api, sentence } from '@/api/client';
import type { Schemas } from '@/api/types/schemas';
import { DataTable } from '@/components/DataTable';
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
      <DataTable
        minWidth={600}
        horizontalSpacing="md"
        rows={rows}
        keyOf={({ id }) => id}
        columns={[
          {
            head: 'When',
            width: 170,
            cell: ({ at }) => <span title={new Date(at).toLocaleString()}>{ago(at, now)}</span>,
          },
          { head: 'Who', width: 190, cell: ({ who }) => who },
          { head: 'Action', width: 190, cell: ({ action }) => action },
          {
            head: 'Object',
            cell: ({ what }) => (
              <Text size="sm" className="mono" style={{ overflowWrap: 'anywhere' }}>
                {what}
              </Text>
            ),
          },
        ]}
      />
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
