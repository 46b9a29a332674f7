import { Anchor, Badge, Button, Group, Stack, Text, Tooltip, VisuallyHidden } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { Link } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { command } from '@/api/command';
import { useChange, useMayWrite } from '@/api/queries';
import type { FleetWorker } from '@/api/types';
import { DataTable } from '@/components/DataTable';
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
    <DataTable
      flush
      minWidth={0}
      className={classes.table}
      rows={workers}
      keyOf={({ queue, worker }) => `${queue} ${worker}`}
      testId={({ queue }) => `worker-${queue}`}
      columns={[
        { head: 'Worker', cell: (worker) => <Who worker={worker} /> },
        { head: 'State', look: { className: classes.state }, cell: (worker) => <State worker={worker} /> },
        { head: 'Works on', cell: (worker) => <Works worker={worker} /> },
        { head: 'Cores and load', cell: (worker) => <Cores worker={worker} /> },
        { head: 'Memory free', cell: (worker) => <Text size="sm">{memoryText(worker)}</Text> },
        { head: 'Version', cell: (worker) => <Version worker={worker} version={version} /> },
        {
          head: 'Calibration',
          look: { className: classes.calibration },
          cell: (worker) => <Calibration worker={worker} now={now} />,
        },
        {
          head: 'Heartbeat',
          cell: ({ silent_s }) => (
            <Text size="sm">{silent_s < 2.5 ? 'now' : `${duration(silent_s)} ago`}</Text>
          ),
        },
        {
          head: <VisuallyHidden>Actions</VisuallyHidden>,
          cell: (worker) =>
            mayWrite && (
              <Group gap={6} justify="flex-end" wrap="nowrap">
                {worker.queue === 'emulate' && <CalibrateButton worker={worker} />}
                <DrainButton worker={worker} />
              </Group>
            ),
        },
      ]}
    />
  );
}

function Who({ worker }: { worker: FleetWorker }) {
  return (
    <>
      <Tooltip label={worker.processor || 'Unknown processor'}>
        <Text size="sm" fw={500}>
          {hostOf(worker)}
        </Text>
      </Tooltip>
      <Text size="xs" c="dimmed">
        {QUEUES[worker.queue] ?? worker.queue}, process {worker.pid}
      </Text>
    </>
  );
}

function State({ worker }: { worker: FleetWorker }) {
  const doing = state(worker);
  return (
    <>
      <Badge variant="light" color={COLORS[doing]} data-testid="worker-state">
        {doing}
      </Badge>
      {worker.refused && (
        <Text size="xs" c="dimmed" mt={2}>
          {worker.refused}
        </Text>
      )}
    </>
  );
}

function Cores({ worker }: { worker: FleetWorker }) {
  return (
    <>
      <Text size="sm">
        {worker.cores} {worker.cores === 1 ? 'core' : 'cores'}, load {worker.load_1min.toFixed(1)}
      </Text>
      <Text size="xs" c="dimmed">
        {capabilityText(worker)}
      </Text>
    </>
  );
}

function Version({ worker, version }: { worker: FleetWorker; version: string }) {
  return (
    <>
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
    </>
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
