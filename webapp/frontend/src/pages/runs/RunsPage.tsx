import { Button, Card, Skeleton, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { Link } from 'react-router';
import { sentence } from '@/api/client';
import { useMayWrite, useRuns } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { COLUMNS } from '@/run/table/columns';
import { FilterBar } from './FilterBar';
import { RunsTable } from './RunsTable';
import { SelectionBar } from './SelectionBar';
import { choices, NO_FILTER, shown, type Sort, sorted } from '@/run/table/table';

/** The page /runs: all runs, with filters and actions on the selected ones. */
export function RunsPage() {
  const query = useRuns();
  const mayWrite = useMayWrite();
  const [filter, setFilter] = useState(NO_FILTER);
  const [sort, setSort] = useState<Sort>({ key: 'id', descending: true });
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const [keys, setKeys] = useLocalStorage({
    key: 'edgeloom-run-columns',
    defaultValue: COLUMNS.filter((column) => column.usual).map((column) => column.key),
  });
  const runs = useMemo(() => query.data ?? [], [query.data]);
  const rows = useMemo(() => sorted(shown(runs, filter), sort), [runs, filter, sort]);
  const chosen = runs.filter((run) => selected.has(run.id));
  const start = mayWrite && (
    <Button component={Link} to="/runs/new" leftSection={<IconPlus size={16} />} data-testid="new-run">
      New run
    </Button>
  );
  return (
    <Page title="Runs" about="Select two to six runs to compare them." actions={start} wide>
      {query.isError && <ErrorPanel message={sentence(query.error)} onRetry={() => query.refetch()} />}
      {query.isPending && <Skeleton height={320} radius="md" />}
      {query.data?.length === 0 && (
        <Card>
          <EmptyState title="No run yet" text="Choose a cluster, a model and a strategy, and start one.">
            {start}
          </EmptyState>
        </Card>
      )}
      {runs.length > 0 && (
        <>
          <FilterBar runs={runs} filter={filter} onFilter={setFilter} columns={keys} onColumns={setKeys} />
          <Card padding={0}>
            <RunsTable
              runs={rows}
              columns={COLUMNS.filter((column) => keys.includes(column.key))}
              sort={sort}
              onSort={setSort}
              selected={selected}
              onSelect={setSelected}
            />
            {rows.length === 0 && (
              <Text c="dimmed" ta="center" py="xl">
                No run matches.
              </Text>
            )}
          </Card>
          <SelectionBar
            chosen={chosen}
            knownTags={choices(runs, (run) => run.tags)}
            mayWrite={mayWrite}
            onClear={() => setSelected(new Set())}
          />
        </>
      )}
    </Page>
  );
}
