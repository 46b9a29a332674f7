import { Anchor, Badge, Checkbox, Group, Select, Text, VisuallyHidden } from '@mantine/core';
import { useState } from 'react';
import { useMetrics } from '@/api/queries';
import { WORLDS } from '@/api/worlds';
import { DataTable } from '@/components/DataTable';
import { Link } from '@/components/navigation';
import { Panel } from '@/components/Panel';
import type { RowAnswer } from '@/experiment/data/answers';
import { STATE_TEXT } from '@/experiment/data/rows';
import type { ExperimentDocument } from '@/experiment/data/types';
import { metricText } from '@/format/metrics';
import { outcomeText } from '@/format/words';
import type { Selection } from '../selection';
import { coordinateColumns } from './coordinateColumns';

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
      <DataTable
        flush
        minWidth={800}
        maxHeight={520}
        verticalSpacing={5}
        step={STEP}
        rows={matching}
        keyOf={({ index, world }) => `${index}/${world}`}
        testId={({ index, world }) => `row-${index}-${world}`}
        columns={[
          {
            head: <VisuallyHidden>Select</VisuallyHidden>,
            width: 34,
            cell: ({ index, digest }) => (
              <Checkbox
                size="xs"
                aria-label={`Select point ${index}`}
                checked={selection.digests.has(digest)}
                disabled={!digest}
                onChange={() => selection.select([digest], 'toggle')}
              />
            ),
          },
          ...coordinateColumns(experiment),
          { head: 'World', cell: ({ world }) => world },
          { head: 'State', look: { maw: 360 }, cell: (row) => <State row={row} /> },
          ...metrics.map(({ name, title, unit }) => ({
            head: title,
            right: true,
            cell: (row: RowAnswer) => metricText(row.metrics[name] ?? null, unit),
          })),
        ]}
      />
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
