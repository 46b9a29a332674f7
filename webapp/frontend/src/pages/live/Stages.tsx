import { Text } from '@mantine/core';
import type { RunState } from '@/api/types';
import classes from './live.module.css';

const WAY: RunState[] = [
  'queued',
  'planning',
  'building',
  'calibrating',
  'loading',
  'running',
  'verifying',
  'finished',
];

interface Props {
  state: RunState;
  /** All states so far, to show where a run that did not finish ended. */
  seen: readonly { state: RunState }[];
  /** What is to be said of this attempt, if it is not the first. */
  attempt: string;
  detail: string;
}

/** The run's progress through its states, from queued to finished, and what is being done now. */
export function Stages({ state, seen, attempt, detail }: Props) {
  const ended = state === 'failed' || state === 'cancelled';
  const at = Math.max(WAY.indexOf(state), ...(ended ? seen.map((one) => WAY.indexOf(one.state)) : []));
  return (
    <div className={classes.way}>
      <ol className={classes.stages} aria-label="Stages of the run">
        {WAY.map((stage, index) => (
          <li
            key={stage}
            data-done={(at >= 0 && index < at) || state === 'finished' || undefined}
            data-now={(index === at && state !== 'finished' && !ended) || undefined}
            data-broken={(index === at && ended) || undefined}
            aria-current={index === at ? 'step' : undefined}
          >
            {stage}
          </li>
        ))}
      </ol>
      {attempt && !ended && (
        <Text size="xs" c="var(--loom-warn)" lh={1.25} className={classes.attempt} data-testid="attempt">
          {attempt}
        </Text>
      )}
      {detail && !ended && state !== 'queued' && (
        <Text size="xs" c="dimmed" lh={1.25} lineClamp={2} title={detail} data-testid="stage-detail">
          {detail}
        </Text>
      )}
    </div>
  );
}
