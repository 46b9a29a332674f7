import type { RunState } from '@/api/types';
import classes from './live.module.css';

const WAY: RunState[] = ['queued', 'planning', 'building', 'calibrating', 'loading', 'running', 'verifying', 'finished'];

/** How far the run has come on its way from the queue to the report. */
export function Stages({ state, detail }: { state: RunState; detail: string }) {
  const at = WAY.indexOf(state);
  return (
    <ol className={classes.stages} aria-label="Stages of the run" title={detail || undefined}>
      {WAY.map((stage, index) => (
        <li
          key={stage} data-done={(at >= 0 && index < at) || state === 'finished' || undefined}
          data-now={(index === at && state !== 'finished') || undefined} aria-current={index === at ? 'step' : undefined}
        >
          {stage}
        </li>
      ))}
    </ol>
  );
}
