import { Badge, Group, Text } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconWaveSine, IconX } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { Metric, RunRow } from '@/api/types';
import { metricText, paramText } from '@/format/metrics';
import { ago, maybe } from '@/format/units';
import { outcomeText } from '@/format/words';
import { StatusBadge } from '@/run/panels/StatusBadge';

export interface ColumnSpec {
  /** What `valueOf` of table.ts sorts by. */
  key: string;
  title: string;
  about?: string;
  /** Right-aligned. */
  numeric?: boolean;
  sortable: boolean;
  /** Shown by default. */
  usual: boolean;
  /** Pixels. */
  width: number;
  cell: (run: RunRow, now: number) => ReactNode;
}

const TEXTS: readonly ColumnSpec[] = [
  {
    key: 'status',
    title: 'State',
    sortable: true,
    usual: true,
    width: 104,
    cell: (run) => <Status run={run} />,
  },
  {
    key: 'cluster_name',
    title: 'Cluster',
    sortable: true,
    usual: true,
    width: 80,
    cell: (run) => run.cluster_name,
  },
  { key: 'model', title: 'Model', sortable: true, usual: true, width: 92, cell: (run) => run.model },
  {
    key: 'strategy',
    title: 'Strategy',
    sortable: true,
    usual: true,
    width: 100,
    cell: (run) => run.strategy,
  },
];

const REST: readonly ColumnSpec[] = [
  {
    key: 'verdicts',
    title: 'Verdicts',
    sortable: false,
    usual: true,
    width: 172,
    cell: (run) => <Verdicts run={run} />,
  },
  {
    key: 'tags',
    title: 'Tags',
    sortable: false,
    usual: true,
    width: 86,
    cell: (run) => <Tags tags={run.tags} />,
  },
  { key: 'owner', title: 'By', sortable: true, usual: false, width: 90, cell: (run) => run.owner },
  {
    key: 'created_at',
    title: 'Created',
    sortable: true,
    usual: true,
    width: 124,
    cell: (run, now) => (
      <Text span size="sm" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
        {ago(run.created_at, now)}
      </Text>
    ),
  },
];

/** What lists can show of a run, with the figures that have a place in lists. */
export const columnsOf = (metrics: readonly Metric[]): ColumnSpec[] => [
  ...TEXTS,
  ...inLists(metrics).map((metric) => ({
    key: metric.name,
    title: titleOf(metric),
    about: aboutOf(metric),
    usual: metric.shown.includes('usual'),
    numeric: true,
    sortable: true,
    width: titleOf(metric).length > 8 ? 100 : 84,
    cell: (run: RunRow) => maybe(run.figures[metric.name], (value) => metricText(value, metric.unit)),
  })),
  ...REST,
];

export const inLists = (metrics: readonly Metric[]): Metric[] =>
  metrics.filter(({ shown }) => shown.includes('list'));

export const titleOf = ({ short, title }: Metric): string => short || title;

/** The whole title of a column, and what else is to be known of its figure. */
export const aboutOf = ({ title, about }: Metric): string => [title, about].filter(Boolean).join(': ');

/** One column per parameter that any of the runs has. */
export function paramColumns(runs: readonly RunRow[]): ColumnSpec[] {
  const names = new Set(runs.flatMap((run) => Object.keys(run.params)));
  return [...names].toSorted().map((name) => ({
    key: `params.${name}`,
    title: name.replaceAll('_', ' '),
    about: 'parameter',
    usual: false,
    numeric: runs.every((run) => ['number', 'undefined'].includes(typeof run.params[name])),
    sortable: true,
    width: 110,
    cell: (run: RunRow) => (name in run.params ? paramText(name, run.params[name]) : '–'),
  }));
}

function Status({ run }: { run: RunRow }) {
  const outcome =
    run.outcome && !['finished', 'cancelled', 'failed'].includes(run.outcome) ? outcomeText(run.outcome) : '';
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

interface Chip {
  label: string;
  about: string;
  color: string;
  Icon: typeof IconCheck;
}

function chipsOf({ correct, lossy, valid }: RunRow): Chip[] {
  const chips: Chip[] = [];
  if (correct === true)
    chips.push({ label: 'correct', about: 'agrees with the reference', color: 'green', Icon: IconCheck });
  if (correct === false)
    chips.push({ label: 'wrong', about: 'differs from the reference', color: 'red', Icon: IconX });
  if (correct === null && lossy)
    chips.push({
      label: 'lossy',
      about: 'the method may change the result',
      color: 'yellow',
      Icon: IconWaveSine,
    });
  if (valid === true)
    chips.push({ label: 'valid', about: 'its times agree with the models', color: 'green', Icon: IconCheck });
  if (valid === false)
    chips.push({
      label: 'not valid',
      about: 'its times differ from the models: see the report',
      color: 'yellow',
      Icon: IconAlertTriangle,
    });
  return chips;
}

function Verdicts({ run }: { run: RunRow }) {
  const chips = chipsOf(run);
  if (chips.length === 0)
    return (
      <Text span size="sm" c="dimmed">
        –
      </Text>
    );
  return (
    <Group gap={4} wrap="nowrap">
      {chips.map(({ label, about, color, Icon }) => (
        <Badge
          key={label}
          title={about}
          variant="light"
          color={color}
          leftSection={<Icon size={11} stroke={2.4} />}
          size="sm"
          fz={11}
          px={6}
          style={{ flex: 'none' }}
        >
          {label}
        </Badge>
      ))}
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
