import { Anchor, Table, Text } from '@mantine/core';
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
    <div className={classes.scroll}>
      <Table className={classes.table} verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Place</Table.Th>
            <Table.Th>Run</Table.Th>
            <Table.Th>Owner</Table.Th>
            <Table.Th>Likely start</Table.Th>
            <Table.Th>Workers that cannot take it</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {queue.map((run) => (
            <Table.Tr key={run.id} data-testid={`waiting-${run.id}`}>
              <Table.Td>{run.position}</Table.Td>
              <Table.Td>
                <Anchor component={Link} to={`/runs/${run.id}`} size="sm">
                  {run.name}
                </Anchor>
              </Table.Td>
              <Table.Td>{run.owner || '–'}</Table.Td>
              <Table.Td>{startText(run)}</Table.Td>
              <Table.Td>
                <Refusals run={run} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
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
