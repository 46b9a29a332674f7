import { Alert, Anchor, Button, Group, Text, Title } from '@mantine/core';
import { IconPlayerStopFilled, IconReportAnalytics } from '@tabler/icons-react';
import { useState } from 'react';
import { Link, useSearchParams } from '@/components/navigation';
import { isOver, type RunDetail } from '@/api/types';
import { cancelRun } from '@/run/feed/commands';
import type { Feed } from '@/run/feed/feed';
import { aloneText } from '@/run/data/alone';
import { modelText } from '@/run/data/modelText';
import type { Snapshot } from '@/run/data/snapshot';
import { waitText } from '@/run/panels/waiting';
import { StatusBadge } from '@/run/panels/StatusBadge';
import type { PredictedToken } from '@/run/data/progress';
import type { Selection } from '@/run/topology/Topology';
import { FeedHealth } from './FeedHealth';
import { Figures } from './Figures';
import { Stages } from './Stages';
import { Story } from './Story';
import classes from './live.module.css';

interface Props {
  run: RunDetail;
  picture: Snapshot;
  predicted: readonly PredictedToken[];
  /** Wall seconds per virtual second; null while the run has not chosen it. */
  dilation: number | null;
  feed: Feed;
  /** Shows a link or a device among the controls. */
  onShow: (selection: Selection) => void;
}

/** Name, state and progress of the run, the state of the connection, and the stop button. */
export function LiveHeader({ run, picture, predicted, dilation, feed, onShow }: Props) {
  const state = isOver(run.status) ? run.status : picture.states.length > 0 ? picture.state : run.status;
  const over = isOver(state);
  const alone = run.spec ? aloneText(run.spec.cluster, run.plan) : '';
  return (
    <header>
      <Group justify="space-between" wrap="nowrap" gap="md" className={classes.head}>
        <Group gap="sm" wrap="nowrap" className={classes.name} style={{ minWidth: 0 }}>
          <Title order={1} fz={18} className={classes.title} data-testid="run-name">
            {run.name || `Run ${run.id}`}
          </Title>
          <StatusBadge state={state} />
          <Text size="sm" c="dimmed" truncate>
            {run.strategy}
            {alone && ` (${alone})`} · {modelText(run)} on {run.cluster_name} ·{' '}
            <Anchor component={Link} to="/runs" size="sm" c="dimmed">
              all runs
            </Anchor>
          </Text>
        </Group>
        <Group gap="sm" wrap="nowrap">
          <FeedHealth feed={feed} state={picture.state} ended={over} events={picture.events} />
          {over ? (
            <ReportButton />
          ) : (
            <StopButton runId={run.id} queued={state === 'queued'} locked={run.locked} />
          )}
        </Group>
      </Group>
      {state === 'queued' && (
        <Alert variant="light" mt="xs" py={6} data-testid="queue-position">
          {waitText(run) || takenText(picture.stateDetail)}
        </Alert>
      )}
      {over && state !== 'finished' && (
        <Alert
          variant="light"
          color={state === 'failed' ? 'red' : 'gray'}
          mt="xs"
          py={6}
          data-testid="outcome"
        >
          {run.error ?? picture.stateDetail ?? `The run was ${state}.`}
        </Alert>
      )}
      <Story run={run} picture={picture} onShow={onShow} />
      <div className={classes.facts}>
        <Stages state={state} seen={picture.states} attempt={picture.attempt} detail={picture.stateDetail} />
        <Figures run={run} picture={picture} predicted={predicted} dilation={dilation} over={over} />
      </div>
    </header>
  );
}

/** A worker has the run; on its machine other programs' runs may be before it. */
const takenText = (detail: string) => `A worker has it${detail ? ` and waits: ${detail}` : ''}.`;

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
