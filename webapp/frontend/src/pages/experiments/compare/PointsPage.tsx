import { ActionIcon, Anchor, Button, Center, Loader, Stack, Table } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { useQueries } from '@tanstack/react-query';
import { useMetrics } from '@/api/queries';
import { Link } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import type { RowAnswer, RowsAnswer } from '@/experiment/data/answers';
import { differing } from '@/experiment/data/rows';
import { paramText, metricText } from '@/format/metrics';
import { type ComparedPoint, useComparison } from '../comparison';
import classes from './compare.module.css';

/** The page /experiments/compare: points of any experiments side by side, configuration beside metrics. */
export function PointsPage() {
  const [points, setPoints] = useComparison();
  const ids = [...new Set(points.map(({ experiment }) => experiment))];
  const answers = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['experiments', id, 'all rows'],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        api.get<RowsAnswer>(`/experiments/${id}/rows?since=0`, signal),
    })),
  });
  const failed = answers.find(({ isError }) => isError);
  const columns = points.flatMap((point) => {
    const rows = answers[ids.indexOf(point.experiment)]?.data?.rows ?? [];
    return rows
      .filter(({ digest, state }) => digest === point.digest && state === 'done')
      .map((row) => ({ point, row }));
  });
  return (
    <Page
      wide
      title="Compare points"
      about="Points of any experiments, side by side: what differs, and what came of it."
      actions={
        points.length > 0 && (
          <Button variant="default" onClick={() => setPoints([])} data-testid="clear-comparison">
            Clear
          </Button>
        )
      }
    >
      {points.length === 0 && (
        <EmptyState
          title="No point is chosen"
          text="Select points in the figure or the table of an experiment, then add them to the comparison."
        >
          <Button component={Link} to="/experiments">
            All experiments
          </Button>
        </EmptyState>
      )}
      {failed && <ErrorPanel message={sentence(failed.error)} onRetry={() => failed.refetch()} />}
      {answers.some(({ isPending }) => isPending) && (
        <Center mih={200}>
          <Loader type="dots" />
        </Center>
      )}
      {columns.length > 0 && (
        <Sheet columns={columns} onRemove={(point) => setPoints(points.filter((one) => one !== point))} />
      )}
    </Page>
  );
}

interface SheetProps {
  columns: { point: ComparedPoint; row: RowAnswer }[];
  onRemove: (point: ComparedPoint) => void;
}

function Sheet({ columns, onRemove }: SheetProps) {
  const metrics = useMetrics();
  const rows = columns.map(({ row }) => row);
  const shown = metrics.filter(({ name }) => rows.some((row) => (row.metrics[name] ?? 0) !== 0));
  const heads = columns.map(({ point, row }) => (
    <Table.Th key={`${point.experiment}/${row.digest}/${row.world}`}>
      <span className={classes.head}>
        <Anchor
          component={Link}
          to={row.run_id === null ? `/experiments/${point.experiment}` : `/runs/${row.run_id}`}
          size="sm"
        >
          {row.run_id === null ? `experiment ${point.experiment}, point ${row.index}` : `run ${row.run_id}`}
        </Anchor>
        <ActionIcon
          size="xs"
          variant="subtle"
          color="gray"
          onClick={() => onRemove(point)}
          aria-label="Remove this point"
        >
          <IconX size={12} />
        </ActionIcon>
      </span>
    </Table.Th>
  ));
  return (
    <Stack gap={14}>
      <Panel title="What differs" testId="points-differ" flush>
        <Table.ScrollContainer minWidth={240 + columns.length * 140}>
          <Table className={classes.table} verticalSpacing={6}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th w={220}>Differs</Table.Th>
                {heads}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {differing(rows).map(({ name, values }) => (
                <Table.Tr key={name}>
                  <Table.Th scope="row">{name.replaceAll('_', ' ')}</Table.Th>
                  {values.map((value, at) => (
                    <Table.Td key={at}>{paramText(name, value)}</Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      </Panel>
      <Panel title="Results" testId="points-metrics" about="the best of each row is bold" flush>
        <Table.ScrollContainer minWidth={240 + columns.length * 140}>
          <Table className={classes.table} verticalSpacing={6}>
            <Table.Tbody>
              {shown.map(({ name, title, unit, better }) => {
                const values = rows.map((row) => row.metrics[name]);
                const best = bestOf(values, better);
                return (
                  <Table.Tr key={name}>
                    <Table.Th scope="row" w={220}>
                      {title}
                      {better && (
                        <span title={`${better} is better`}>{better === 'lower' ? ' ↓' : ' ↑'}</span>
                      )}
                    </Table.Th>
                    {values.map((value, at) => (
                      <Table.Td key={at} fw={value !== undefined && value === best ? 600 : undefined}>
                        {value === undefined ? '–' : metricText(value, unit)}
                      </Table.Td>
                    ))}
                  </Table.Tr>
                );
              })}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      </Panel>
    </Stack>
  );
}

/** The best value if some are worse; null if neither direction is better or all are the same. */
function bestOf(values: readonly (number | undefined)[], better: 'lower' | 'higher' | null): number | null {
  const known = values.filter((value) => value !== undefined);
  if (better === null || new Set(known).size < 2) return null;
  return better === 'lower' ? Math.min(...known) : Math.max(...known);
}
