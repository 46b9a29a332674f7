import { Alert, Anchor, Button, Group, Text, Title } from '@mantine/core';
import { IconPlayerStopFilled, IconReportAnalytics } from '@tabler/icons-react';
import { useState } from 'react';
import { Link, useSearchParams } from 'react-router';
import { isOver, type RunDetail } from '@/api/types';
import { three } from '@/format/units';
import { cancelRun } from '@/run/feed/commands';
import type { Feed } from '@/run/feed/feed';
import type { Snapshot } from '@/run/data/snapshot';
import { StatusBadge } from '@/run/panels/StatusBadge';
import { FeedHealth } from './FeedHealth';
import { Stages } from './Stages';
import classes from './live.module.css';

interface Props {
  run: RunDetail;
  picture: Snapshot;
  feed: Feed;
}

/** Name, state and clock of the run, the state of the connection, and the stop button. */
export function LiveHeader({ run, picture, feed }: Props) {
  const state = isOver(run.status) ? run.status : picture.states.length > 0 ? picture.state : run.status;
  const over = isOver(state);
  const dilation = run.report?.dilation ?? picture.report?.dilation ?? dilationOf(picture, run);
  return (
    <header>
      <Group justify="space-between" wrap="nowrap" align="flex-start">
        <div style={{ minWidth: 0 }}>
          <Group gap="sm" wrap="nowrap">
            <Title order={2} fz={22} className={classes.title} data-testid="run-name">
              {run.name || `Run ${run.id}`}
            </Title>
            <StatusBadge state={state} />
          </Group>
          <Text size="sm" c="dimmed">
            {run.strategy} · {run.model} on {run.cluster_name} ·{' '}
            <Anchor component={Link} to="/runs" size="sm" c="dimmed">
              all runs
            </Anchor>
          </Text>
        </div>
        <Group gap="sm" wrap="nowrap">
          <FeedHealth feed={feed} over={over} complete={isOver(picture.state)} events={picture.events} />
          {over ? (
            <ReportButton />
          ) : (
            <StopButton runId={run.id} queued={state === 'queued'} locked={run.locked} />
          )}
        </Group>
      </Group>
      {state === 'queued' && (
        <Alert variant="light" mt="sm" data-testid="queue-position">
          {run.queue_position === null
            ? `Waiting for its turn${picture.stateDetail ? `: ${picture.stateDetail}` : ''}.`
            : run.queue_position > 1
              ? `Number ${run.queue_position} in the queue: the run starts when those before it have ended.`
              : 'Next in the queue: the run starts when the emulator is free.'}
        </Alert>
      )}
      {over && state !== 'finished' && (
        <Alert variant="light" color={state === 'failed' ? 'red' : 'gray'} mt="sm" data-testid="outcome">
          {run.error ?? picture.stateDetail ?? `The run was ${state}.`}
        </Alert>
      )}
      <div className={classes.facts}>
        <Stages state={state} seen={picture.states} detail={picture.stateDetail || run.error || ''} />
        <Figures picture={picture} dilation={dilation} />
      </div>
    </header>
  );
}

function Figures({ picture, dilation }: { picture: Snapshot; dilation: number | string }) {
  const figures: [string, string, string][] = [
    ['virtual-clock', 'virtual time', `${picture.time_s.toFixed(2)} s`],
    ['dilation', 'dilation D', typeof dilation === 'number' ? `${three(dilation)}×` : dilation],
    ['event-count', 'events', picture.events.toLocaleString('en')],
  ];
  return (
    <Group gap={26} wrap="nowrap">
      {figures.map(([id, label, value]) => (
        <div key={id} className={classes.figure}>
          <span className={classes.figureLabel}>{label}</span>
          <span className={classes.figureValue} data-testid={id}>
            {value}
          </span>
        </div>
      ))}
    </Group>
  );
}

/** The dilation that the run chose; until it has built the network, the one requested. */
function dilationOf(picture: Snapshot, run: RunDetail): number | string {
  const said = picture.states
    .find((one) => one.detail.startsWith('dilation '))
    ?.detail.slice('dilation '.length);
  const number = Number(said);
  return said && Number.isFinite(number) ? number : run.spec.dilation;
}

function StopButton({ runId, queued, locked }: { runId: number; queued: boolean; locked: string | null }) {
  const [stopping, setStopping] = useState(false);
  return (
    <Button
      color="red"
      variant="light"
      leftSection={<IconPlayerStopFilled size={15} />}
      data-testid="stop"
      disabled={locked !== null}
      loading={stopping}
      title={locked ?? undefined}
      onClick={async () => {
        setStopping(true);
        if (!(await cancelRun(runId))) setStopping(false);
      }}
    >
      {queued ? 'Remove from the queue' : 'Stop'}
    </Button>
  );
}

function ReportButton() {
  const [, setParams] = useSearchParams();
  return (
    <Button
      leftSection={<IconReportAnalytics size={16} />}
      data-testid="open-report"
      onClick={() => {
        setParams({ view: 'report' });
        window.scrollTo(0, 0);
      }}
    >
      Open the report
    </Button>
  );
}
