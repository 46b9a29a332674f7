import { Anchor, Badge, Button, Card, Group, Progress, Skeleton, Table, Text } from '@mantine/core';
import { IconFlask, IconPlus } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useMayWrite } from '@/api/queries';
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
      <Table.ScrollContainer minWidth={760}>
        <Table highlightOnHover data-testid="experiments">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Experiment</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th w={240}>Points</Table.Th>
              <Table.Th>By</Table.Th>
              <Table.Th>Changed</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {rows.map((row) => (
              <Table.Tr key={row.id} data-testid={`experiment-${row.id}`}>
                <Table.Td>
                  <Anchor component={Link} to={`/experiments/${row.id}`} fw={500} size="sm">
                    <Group gap={8} wrap="nowrap" component="span" display="inline-flex">
                      <IconFlask size={15} />
                      {row.title || row.name}
                    </Group>
                  </Anchor>
                </Table.Td>
                <Table.Td>
                  <ExperimentBadge state={row.state} />
                </Table.Td>
                <Table.Td>
                  <Points row={row} />
                </Table.Td>
                <Table.Td>
                  <Text size="sm" c="dimmed">
                    {row.owner || '–'}
                  </Text>
                </Table.Td>
                <Table.Td>
                  <Text size="sm" c="dimmed">
                    {ago(row.updated_at, now)}
                  </Text>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
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
