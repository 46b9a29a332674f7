import { Text } from '@mantine/core';
import type { RowAnswer } from '@/experiment/data/answers';
import { duration } from '@/format/units';
import type { Draft } from '@/run/request/draft';
import { KINDS, subjectOf } from '@/run/scenario/changes';
import classes from './design.module.css';

interface Props {
  changes: Draft['scenario']['changes'];
  /** The predictions of the points, as far as they are there. */
  rows: readonly RowAnswer[];
}

/** The changes of the base's scenario over the time of the runs, and which of them come after the end. */
export function ScenarioLine({ changes, rows }: Props) {
  if (changes.length === 0) return null;
  const ends = rows.flatMap(({ metrics }) => metrics['latency_s'] ?? []);
  const longest = Math.max(0, ...ends);
  const span = Math.max(longest, ...changes.map(({ at_s }) => at_s)) || 1;
  const place = (time_s: number) => `${(time_s / span) * 100}%`;
  return (
    <div data-testid="scenario-line">
      <div className={classes.timeline} aria-hidden>
        {longest > 0 && <span className={classes.ran} style={{ width: place(longest) }} />}
        {changes.map((change) => (
          <span
            key={JSON.stringify(change)}
            className={classes.change}
            data-late={ends.some((end) => end < change.at_s)}
            style={{ left: place(change.at_s) }}
          />
        ))}
      </div>
      <ul className={classes.changes}>
        {changes.map((change) => {
          const late = ends.filter((end) => end < change.at_s).length;
          return (
            <li key={JSON.stringify(change)}>
              {duration(change.at_s)}:{' '}
              {KINDS.find(({ value }) => value === change.kind)?.label ?? change.kind}, {subjectOf(change)}
              {late > 0 && (
                <Text span size="xs" c="var(--loom-warn)" data-testid="change-late">
                  {` · ${late} of ${ends.length} points are predicted to end before it`}
                </Text>
              )}
            </li>
          );
        })}
      </ul>
      {longest > 0 && (
        <Text size="xs" c="dimmed">
          The bar is the longest predicted run, {duration(longest)}.
        </Text>
      )}
    </div>
  );
}
