import { Badge, Group, Text, Tooltip } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { RunRow } from '@/api/types';
import { ago, maybe, seconds, three } from '@/format/units';
import { StatusBadge } from '@/run/panels/StatusBadge';
import type { SortKey } from './table';

export interface ColumnSpec {
  key: string;
  title: string;
  sort?: SortKey;
  /** Right-aligned. */
  numeric?: boolean;
  /** Shown by default. */
  usual: boolean;
  cell: (run: RunRow, now: number) => ReactNode;
}

export const COLUMNS: readonly ColumnSpec[] = [
  { key: 'status', title: 'State', sort: 'status', usual: true, cell: (run) => <Status run={run} /> },
  { key: 'cluster', title: 'Cluster', sort: 'cluster_name', usual: true, cell: (run) => run.cluster_name },
  { key: 'model', title: 'Model', sort: 'model', usual: true, cell: (run) => run.model },
  { key: 'strategy', title: 'Strategy', sort: 'strategy', usual: true, cell: (run) => run.strategy },
  {
    key: 'ttft',
    title: 'TTFT',
    sort: 'ttft_s',
    numeric: true,
    usual: true,
    cell: (run) => maybe(run.ttft_s, seconds),
  },
  {
    key: 'tpot',
    title: 'TPOT',
    sort: 'tpot_s',
    numeric: true,
    usual: true,
    cell: (run) => maybe(run.tpot_s, seconds),
  },
  {
    key: 'latency',
    title: 'End to end',
    sort: 'latency_s',
    numeric: true,
    usual: true,
    cell: (run) => maybe(run.latency_s, seconds),
  },
  {
    key: 'rate',
    title: 'Tokens/s',
    sort: 'tokens_per_s',
    numeric: true,
    usual: true,
    cell: (run) => maybe(run.tokens_per_s, three),
  },
  { key: 'verdicts', title: 'Verdicts', usual: true, cell: (run) => <Verdicts run={run} /> },
  { key: 'tags', title: 'Tags', usual: true, cell: (run) => <Tags tags={run.tags} /> },
  { key: 'owner', title: 'By', sort: 'owner', usual: false, cell: (run) => run.owner },
  {
    key: 'created',
    title: 'Created',
    sort: 'created_at',
    usual: true,
    cell: (run, now) => (
      <Text span size="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
        {ago(run.created_at, now)}
      </Text>
    ),
  },
];

function Status({ run }: { run: RunRow }) {
  const outcome =
    run.outcome && !['finished', 'cancelled', 'failed'].includes(run.outcome)
      ? run.outcome.replaceAll('_', ' ')
      : '';
  const note = run.queue_position ? `${run.queue_position}. in the queue` : outcome;
  return (
    <Group gap={6} wrap="nowrap">
      <StatusBadge state={run.status} />
      {note && (
        <Text span size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
          {note}
        </Text>
      )}
    </Group>
  );
}

function Verdicts({ run }: { run: RunRow }) {
  if (run.correct === null && run.valid === null)
    return (
      <Text span size="sm" c="dimmed">
        –
      </Text>
    );
  return (
    <Group gap={8} wrap="nowrap">
      {run.correct !== null && (
        <Tooltip
          label={
            run.correct ? 'Correct: agrees with the reference' : 'Not correct: differs from the reference'
          }
        >
          {run.correct ? (
            <IconCheck size={17} color="var(--loom-good)" />
          ) : (
            <IconX size={17} color="var(--loom-bad)" />
          )}
        </Tooltip>
      )}
      {run.valid === false && (
        <Tooltip label="Not valid: the emulation differs from its models, see the report">
          <IconAlertTriangle size={17} color="var(--loom-warn)" />
        </Tooltip>
      )}
    </Group>
  );
}

function Tags({ tags }: { tags: readonly string[] }) {
  return (
    <Group gap={4} wrap="nowrap">
      {tags.map((tag) => (
        <Badge key={tag} variant="light" color="gray" size="md">
          {tag}
        </Badge>
      ))}
    </Group>
  );
}
