import type { Change } from '@/api/types';
import { Text } from '@mantine/core';
import { duration } from '@/format/units';
import classes from './design.module.css';

interface Props {
  changes: readonly Change[];
  /** When the points end, by the predictions that are there. */
  ends: readonly number[];
}

/** The changes of the base's scenario over the time of the runs, and which of them come after the end. */
export function ScenarioLine({ changes, ends }: Props) {
  const longest = Math.max(0, ...ends);
  const span = Math.max(longest, ...changes.map(({ at_s }) => at_s)) || 1;
  // Where a change after a token comes, each run's prediction says.
  const placed = changes.filter(({ after_token }) => typeof after_token !== 'number');
  const timeOf = ({ at_s, at_frac }: Change) => (typeof at_frac === 'number' ? at_frac * span : at_s);
  const place = (time_s: number) => `${(time_s / span) * 100}%`;
  return (
    <div data-testid="scenario-line">
      <div className={classes.timeline} aria-hidden>
        {longest > 0 && <span className={classes.ran} style={{ width: place(longest) }} />}
        {placed.map((change, at) => (
          <span
            key={`${at} ${JSON.stringify(change)}`}
            className={classes.change}
            data-late={ends.some((end) => end < change.at_s)}
            style={{ left: place(timeOf(change)) }}
          />
        ))}
      </div>
      {longest > 0 && (
        <Text size="xs" c="dimmed">
          The bar is the longest predicted run, {duration(longest)}.
        </Text>
      )}
    </div>
  );
}
