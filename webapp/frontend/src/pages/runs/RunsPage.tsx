import { Button, Card, Skeleton, Text } from '@mantine/core';
import { useLocalStorage, useSessionStorage } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { useMemo, useState } from 'react';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useMayWrite, useMetrics, useRuns } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { columnsOf, paramColumns } from '@/run/table/columns';
import { FilterBar } from './FilterBar';
import { GroupsTable } from './GroupsTable';
import { RunsTable } from './RunsTable';
import { RunActions } from './RunActions';
import { choices, NO_FILTER, shown, sorted } from '@/run/table/table';
import { completed, type View } from '@/run/table/views';

/** As many as the server lists at once. */
const MANY = 5000;
const FIRST: Omit<View, 'name' | 'columns'> = {
  filter: NO_FILTER,
  sort: { key: 'id', descending: true },
  groupBy: [],
};

/** The page /runs: all runs, with filters and actions on the selected ones. */
export function RunsPage() {
  const query = useRuns(MANY);
  const mayWrite = useMayWrite();
  const [selected, setSelected] = useState<ReadonlySet<number>>(new Set());
  const metrics = useMetrics();
  const columns = useMemo(() => columnsOf(metrics), [metrics]);
  const [stored, setKeys] = useLocalStorage<string[] | null>({
    key: 'edgeloom-runs-columns',
    defaultValue: null,
  });
  const keys = useMemo(
    () => stored ?? columns.filter((column) => column.usual).map((column) => column.key),
    [stored, columns],
  );
  const [shownAs, setShownAs] = useSessionStorage({
    key: 'edgeloom-runs-shown',
    defaultValue: FIRST,
    getInitialValueInEffect: false,
  });
  const runs = useMemo(() => query.data ?? [], [query.data]);
  const all = useMemo(() => [...columns, ...paramColumns(runs)], [columns, runs]);
  const { filter, sort, groupBy } = useMemo(() => completed(shownAs), [shownAs]);
  const rows = useMemo(() => sorted(shown(runs, filter), sort), [runs, filter, sort]);
  const chosen = runs.filter((run) => selected.has(run.id));
  const onView = ({ columns: chosenKeys, ...patch }: Partial<Omit<View, 'name'>>) => {
    if (chosenKeys) setKeys([...chosenKeys]);
    setShownAs((old) => ({ ...old, ...patch }));
  };
  const start = mayWrite && (
    <Button component={Link} to="/runs/new" leftSection={<IconPlus size={16} />} data-testid="new-run">
      New run
    </Button>
  );
  return (
    <Page
      title="Runs"
      about={`${query.data ? `${countText(rows.length, runs.length)}; s` : 'S'}elect some to compare, tag, export or delete them.`}
      actions={start}
      wide
    >
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
          <FilterBar runs={runs} all={all} view={{ ...shownAs, columns: keys }} onView={onView} />
          <Card padding={0}>
            {groupBy.length > 0 ? (
              <GroupsTable
                runs={rows}
                metrics={metrics}
                groupBy={groupBy}
                titles={groupBy.map((key) => all.find((column) => column.key === key)?.title ?? key)}
                columns={keys}
                onSelect={setSelected}
              />
            ) : (
              <RunsTable
                runs={rows}
                columns={all.filter((column) => keys.includes(column.key))}
                sort={sort}
                onSort={(next) => onView({ sort: next })}
                selected={selected}
                onSelect={setSelected}
              />
            )}
            {rows.length === 0 && (
              <Text c="dimmed" ta="center" py="xl">
                No run matches.
              </Text>
            )}
          </Card>
          <RunActions
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

/** `8 runs`, `3 of 8 runs`. */
function countText(shownRuns: number, all: number): string {
  const text = `${all} ${all === 1 ? 'run' : 'runs'}`;
  return shownRuns === all ? text : `${shownRuns} of ${text}`;
}
