import { Anchor, Text } from '@mantine/core';
import { DataTable } from '@/components/DataTable';
import { Link } from '@/components/navigation';
import type { WaitingRun } from '@/api/types';
import { duration } from '@/format/units';
import classes from './machines.module.css';

/** Runs that wait for a worker, in the order in which they are taken. */
export function QueueTable({ queue }: { queue: readonly WaitingRun[] }) {
  if (queue.length === 0) {
    return (
      <Text c="dimmed" size="sm" px="md" py="md">
        No run waits.
      </Text>
    );
  }
  return (
    <DataTable
      flush
      minWidth={0}
      className={classes.table}
      rows={queue}
      keyOf={({ id }) => id}
      testId={({ id }) => `waiting-${id}`}
      columns={[
        { head: 'Place', cell: ({ position }) => position },
        {
          head: 'Run',
          cell: ({ id, name }) => (
            <Anchor component={Link} to={`/runs/${id}`} size="sm">
              {name}
            </Anchor>
          ),
        },
        { head: 'Owner', cell: ({ owner }) => owner || '–' },
        { head: 'Likely start', cell: startText },
        { head: 'Workers that cannot take it', cell: (run) => <Refusals run={run} /> },
      ]}
    />
  );
}

function startText(run: WaitingRun): string {
  if (run.problem) return 'when a worker that can run it is there';
  if (run.starts_in_s === null) return run.waits_for || 'unknown';
  return run.starts_in_s < 1 ? 'now' : `in about ${duration(run.starts_in_s)}`;
}

function Refusals({ run }: { run: WaitingRun }) {
  const refusals = Object.entries(run.refusals);
  if (refusals.length === 0) {
    return (
      <Text size="sm" c={run.problem ? 'var(--loom-bad)' : 'dimmed'}>
        {run.problem || 'none'}
      </Text>
    );
  }
  return refusals.map(([node, reason]) => (
    <Text size="xs" key={node} c={run.problem ? 'var(--loom-bad)' : 'dimmed'}>
      {node}: {reason}
    </Text>
  ));
}
