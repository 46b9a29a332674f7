import { Anchor, Badge, Button, Checkbox, Group, Select, Table, Text, VisuallyHidden } from '@mantine/core';
import { useState } from 'react';
import { useMetrics } from '@/api/queries';
import { WORLDS } from '@/api/worlds';
import { Link } from '@/components/navigation';
import { Panel } from '@/components/Panel';
import type { RowAnswer } from '@/experiment/data/answers';
import { labelOf } from '@/experiment/data/design';
import { STATE_TEXT } from '@/experiment/data/rows';
import type { ExperimentDocument } from '@/experiment/data/types';
import { metricText } from '@/format/metrics';
import { outcomeText } from '@/format/words';
import type { Selection } from '../selection';
import classes from './result.module.css';

interface Props {
  rows: readonly RowAnswer[];
  experiment: ExperimentDocument;
  selection: Selection;
}

const STEP = 50;
const SHOWN = ['latency_s', 'ttft_s', 'tpot_s', 'peak_memory_bytes', 'link_bytes'];
const COLOR: Record<RowAnswer['state'], string> = {
  waiting: 'gray',
  running: 'ink',
  done: 'teal',
  failed: 'red',
  problem: 'gray',
};

/** Every point in every world: its coordinates, its state, why it failed, and its run. */
export function PointsTable({ rows, experiment, selection }: Props) {
  const [filter, setFilter] = useState('all');
  const [limit, setLimit] = useState(STEP);
  const metrics = useMetrics().filter(({ name }) => SHOWN.includes(name));
  const matching = rows.filter(({ state, world, digest }) =>
    filter === 'all'
      ? true
      : filter === 'selected'
        ? selection.digests.has(digest)
        : filter === 'failed'
          ? state === 'failed' || state === 'problem'
          : world === filter,
  );
  return (
    <Panel
      title="Points"
      about={`${rows.length} rows`}
      testId="points"
      flush
      extra={
        <Select
          size="xs"
          w={150}
          aria-label="Which rows"
          allowDeselect={false}
          value={filter}
          onChange={(next) => next && setFilter(next)}
          data={[
            { value: 'all', label: 'all' },
            ...WORLDS.filter((one) => rows.some(({ world }) => world === one)),
            { value: 'failed', label: 'without a result' },
            { value: 'selected', label: 'selected' },
          ]}
          data-testid="points-filter"
        />
      }
    >
      <Table.ScrollContainer minWidth={800} mah={520}>
        <Table className={classes.table} verticalSpacing={5} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={34}>
                <VisuallyHidden>Select</VisuallyHidden>
              </Table.Th>
              {experiment.factors.map(({ name, title }) => (
                <Table.Th key={name}>{title || name}</Table.Th>
              ))}
              {experiment.seeds.length > 1 && <Table.Th>Seed</Table.Th>}
              <Table.Th>World</Table.Th>
              <Table.Th>State</Table.Th>
              {metrics.map(({ name, title }) => (
                <Table.Th key={name} ta="right">
                  {title}
                </Table.Th>
              ))}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {matching.slice(0, limit).map((row) => (
              <Table.Tr key={`${row.index}/${row.world}`} data-testid={`row-${row.index}-${row.world}`}>
                <Table.Td>
                  <Checkbox
                    size="xs"
                    aria-label={`Select point ${row.index}`}
                    checked={selection.digests.has(row.digest)}
                    disabled={!row.digest}
                    onChange={() => selection.select([row.digest], 'toggle')}
                  />
                </Table.Td>
                {experiment.factors.map(({ name }) => (
                  <Table.Td key={name}>{labelOf(experiment.factors, name, row.coordinates[name])}</Table.Td>
                ))}
                {experiment.seeds.length > 1 && <Table.Td>{row.seed}</Table.Td>}
                <Table.Td>{row.world}</Table.Td>
                <Table.Td maw={360}>
                  <State row={row} />
                </Table.Td>
                {metrics.map(({ name, unit }) => (
                  <Table.Td key={name} ta="right">
                    {row.metrics[name] === undefined ? '–' : metricText(row.metrics[name], unit)}
                  </Table.Td>
                ))}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {matching.length > limit && (
        <Button variant="subtle" fullWidth onClick={() => setLimit(limit + STEP)}>
          Show {Math.min(STEP, matching.length - limit)} more of {matching.length}
        </Button>
      )}
      {matching.length === 0 && (
        <Text c="dimmed" ta="center" py="md" size="sm">
          No row matches.
        </Text>
      )}
    </Panel>
  );
}

function State({ row }: { row: RowAnswer }) {
  return (
    <>
      <Group gap={8} wrap="nowrap">
        <Badge size="sm" variant="light" color={COLOR[row.state]}>
          {row.state === 'done' && row.outcome !== null && row.outcome !== 'finished'
            ? outcomeText(row.outcome)
            : STATE_TEXT[row.state]}
        </Badge>
        {row.run_id !== null && (
          <Anchor
            component={Link}
            to={`/runs/${row.run_id}`}
            size="sm"
            data-testid={`open-run-${row.run_id}`}
          >
            run {row.run_id}
          </Anchor>
        )}
        {row.metrics['valid'] === 0 && (
          <Badge size="sm" variant="outline" color="yellow">
            not valid
          </Badge>
        )}
        {(row.metrics['changes_missed'] ?? 0) > 0 && (
          <Badge size="sm" variant="outline" color="yellow">
            change missed
          </Badge>
        )}
        {row.stale && (
          <Badge size="sm" variant="light" color="yellow" title={`Made by ${row.stale}`}>
            stale
          </Badge>
        )}
      </Group>
      {row.alone && (
        <Text size="xs" c="dimmed">
          on {row.alone} alone
        </Text>
      )}
      {row.reason && (
        <Text size="xs" c="dimmed" lineClamp={2} title={row.reason}>
          {row.reason}
        </Text>
      )}
    </>
  );
}
