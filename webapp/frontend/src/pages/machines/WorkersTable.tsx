import { Anchor, Badge, Button, Group, Stack, Table, Text, Tooltip, VisuallyHidden } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { Link } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { command } from '@/api/command';
import { useChange, useMayWrite } from '@/api/queries';
import type { FleetWorker } from '@/api/types';
import { EmptyState } from '@/components/EmptyState';
import { useNow } from '@/components/useNow';
import { duration } from '@/format/units';
import { CalibrateButton, Calibration } from './Calibration';
import { besideText, capabilityText, hostOf, memoryText, QUEUES, state } from './worker';
import classes from './machines.module.css';

const COLORS = {
  working: 'yellow',
  calibrating: 'blue',
  ready: 'green',
  draining: 'orange',
  drained: 'gray',
  refused: 'red',
};

/** One row per worker and queue. */
export function WorkersTable({ workers, version }: { workers: readonly FleetWorker[]; version: string }) {
  const mayWrite = useMayWrite();
  const now = useNow();
  if (workers.length === 0) {
    return (
      <EmptyState
        title="No worker is running"
        text={`Start one with ${command('up')}, or with ${command('worker --queue QUEUE')} on another machine.`}
      />
    );
  }
  return (
    <div className={classes.scroll}>
      <Table className={classes.table} verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Worker</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>Works on</Table.Th>
            <Table.Th>Cores and load</Table.Th>
            <Table.Th>Memory free</Table.Th>
            <Table.Th>Version</Table.Th>
            <Table.Th>Calibration</Table.Th>
            <Table.Th>Heartbeat</Table.Th>
            <Table.Th>
              <VisuallyHidden>Actions</VisuallyHidden>
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {workers.map((worker) => (
            <Row
              key={`${worker.queue} ${worker.worker}`}
              worker={worker}
              version={version}
              mayWrite={mayWrite}
              now={now}
            />
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

interface RowProps {
  worker: FleetWorker;
  version: string;
  mayWrite: boolean;
  /** In milliseconds. */
  now: number;
}

function Row({ worker, version, mayWrite, now }: RowProps) {
  const doing = state(worker);
  return (
    <Table.Tr data-testid={`worker-${worker.queue}`} data-state={doing}>
      <Table.Td>
        <Tooltip label={worker.processor || 'Unknown processor'}>
          <Text size="sm" fw={500}>
            {hostOf(worker)}
          </Text>
        </Tooltip>
        <Text size="xs" c="dimmed">
          {QUEUES[worker.queue] ?? worker.queue}, process {worker.pid}
        </Text>
      </Table.Td>
      <Table.Td className={classes.state}>
        <Badge variant="light" color={COLORS[doing]} data-testid="worker-state">
          {doing}
        </Badge>
        {worker.refused && (
          <Text size="xs" c="dimmed" mt={2}>
            {worker.refused}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Works worker={worker} />
      </Table.Td>
      <Table.Td>
        <Text size="sm">
          {worker.cores} {worker.cores === 1 ? 'core' : 'cores'}, load {worker.load_1min.toFixed(1)}
        </Text>
        <Text size="xs" c="dimmed">
          {capabilityText(worker)}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{memoryText(worker)}</Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" ff="monospace" c={worker.version === version ? undefined : 'var(--loom-bad)'}>
          {worker.version}
        </Text>
        {[...worker.methods, ...worker.packs].map((added) => (
          <Text size="xs" c="dimmed" key={added} data-testid="worker-added">
            {added}
          </Text>
        ))}
        {worker.left_out.map((reason) => (
          <Text size="xs" c="var(--loom-bad)" key={reason}>
            {reason}
          </Text>
        ))}
      </Table.Td>
      <Table.Td className={classes.calibration}>
        <Calibration worker={worker} now={now} />
      </Table.Td>
      <Table.Td>
        <Text size="sm">{worker.silent_s < 2.5 ? 'now' : `${duration(worker.silent_s)} ago`}</Text>
      </Table.Td>
      <Table.Td>
        {mayWrite && (
          <Group gap={6} justify="flex-end" wrap="nowrap">
            {worker.queue === 'emulate' && <CalibrateButton worker={worker} />}
            <DrainButton worker={worker} />
          </Group>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function Works({ worker }: { worker: FleetWorker }) {
  return (
    <Stack gap={2}>
      {worker.runs.length === 0 && (
        <Text size="sm" c="dimmed">
          {worker.queue === 'emulate' ? 'no run' : '–'}
        </Text>
      )}
      {worker.beside.map((holder) => (
        <Text
          size="xs"
          c={holder.counts ? 'var(--loom-warn)' : 'dimmed'}
          key={holder.pid}
          data-testid="beside"
        >
          {besideText(holder)}
        </Text>
      ))}
      {worker.runs.map((run) => (
        <Text size="sm" key={run.id}>
          <Anchor component={Link} to={`/runs/${run.id}`} size="sm">
            {run.name}
          </Anchor>
          <Text span size="xs" c="dimmed">
            {' '}
            {run.status} for {duration(run.seconds)}
          </Text>
        </Text>
      ))}
    </Stack>
  );
}

function DrainButton({ worker }: { worker: FleetWorker }) {
  const change = useChange('fleet', (action: 'drain' | 'undrain') =>
    api.post(`/fleet/${action}`, { worker: worker.worker }),
  );
  const action = worker.drained ? 'undrain' : 'drain';
  return (
    <Tooltip
      label={worker.drained ? 'Let it take work again' : 'It finishes what it does and takes nothing more'}
    >
      <Button
        size="compact-xs"
        variant="default"
        loading={change.isPending}
        onClick={() =>
          change.mutate(action, {
            onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
          })
        }
        data-testid={`${action}-${worker.queue}`}
      >
        {worker.drained ? 'Undrain' : 'Drain'}
      </Button>
    </Tooltip>
  );
}
