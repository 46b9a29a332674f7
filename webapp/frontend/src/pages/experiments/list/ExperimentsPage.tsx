import { Anchor, Badge, Button, Card, Group, Progress, Skeleton, Text } from '@mantine/core';
import { IconFlask, IconPlus } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useMayWrite } from '@/api/queries';
import { DataTable } from '@/components/DataTable';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { useNow } from '@/components/useNow';
import type { ExperimentRow } from '@/experiment/data/answers';
import { useExperiments, useShipped } from '@/experiment/data/queries';
import { ago } from '@/format/units';
import { ExperimentBadge } from '../ExperimentBadge';
import { ImportButton } from './ImportButton';
import { ShippedPanel } from './ShippedPanel';

/** The page /experiments: all experiments, newest first. */
export function ExperimentsPage() {
  const query = useExperiments();
  const shipped = useShipped();
  const mayWrite = useMayWrite();
  const start = mayWrite && (
    <Button
      component={Link}
      to="/experiments/new"
      leftSection={<IconPlus size={16} />}
      data-testid="new-experiment"
    >
      New experiment
    </Button>
  );
  return (
    <Page
      title="Experiments"
      about="One question, many runs: a figure and a table instead of a single report."
      actions={
        <>
          <Button
            component={Link}
            to="/experiments/reproductions"
            variant="default"
            data-testid="open-reproductions"
          >
            Reproductions
          </Button>
          {mayWrite && <ImportButton />}
          {start}
        </>
      }
    >
      {query.isError && <ErrorPanel message={sentence(query.error)} onRetry={() => query.refetch()} />}
      {query.isPending && <Skeleton height={240} radius="md" />}
      {query.data?.length === 0 && (
        <Card>
          <EmptyState
            title="No experiment yet"
            text={
              mayWrite
                ? 'Choose a cluster, tick strategies and vary what you like: the predicted figure appears at once.'
                : 'Predicting and emulating needs the role operator: ask an administrator.'
            }
          >
            {start}
          </EmptyState>
        </Card>
      )}
      {query.data && query.data.length > 0 && <List rows={query.data} />}
      {!query.isPending && <ShippedPanel query={shipped} />}
    </Page>
  );
}

function List({ rows }: { rows: readonly ExperimentRow[] }) {
  const now = useNow();
  return (
    <Card padding={0}>
      <DataTable
        data-testid="experiments"
        highlightOnHover
        minWidth={760}
        rows={rows}
        keyOf={({ id }) => id}
        testId={({ id }) => `experiment-${id}`}
        columns={[
          {
            head: 'Experiment',
            cell: ({ id, title, name }) => (
              <Anchor component={Link} to={`/experiments/${id}`} fw={500} size="sm">
                <Group gap={8} wrap="nowrap" component="span" display="inline-flex">
                  <IconFlask size={15} />
                  {title || name}
                </Group>
              </Anchor>
            ),
          },
          { head: 'State', cell: ({ state }) => <ExperimentBadge state={state} /> },
          { head: 'Points', width: 240, cell: (row) => <Points row={row} /> },
          { head: 'By', look: { c: 'dimmed' }, cell: ({ owner }) => owner || '–' },
          { head: 'Changed', look: { c: 'dimmed' }, cell: (row) => ago(row.updated_at, now) },
        ]}
      />
    </Card>
  );
}

function Points({ row: { total, done, failed } }: { row: ExperimentRow }) {
  if (total === 0)
    return (
      <Text size="sm" c="dimmed">
        –
      </Text>
    );
  return (
    <Group gap="xs" wrap="nowrap">
      <Progress.Root w={110} size={8}>
        <Progress.Section
          value={(done / total) * 100}
          color="teal"
          aria-label={`${done} of ${total} points done`}
        />
        <Progress.Section
          value={(failed / total) * 100}
          color="red"
          aria-label={`${failed} of ${total} points failed`}
        />
      </Progress.Root>
      <Text size="sm">
        {done} of {total}
      </Text>
      {failed > 0 && (
        <Badge color="red" variant="light" size="sm">
          {failed} failed
        </Badge>
      )}
    </Group>
  );
}
