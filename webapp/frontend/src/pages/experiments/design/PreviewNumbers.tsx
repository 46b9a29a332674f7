import { Loader } from '@mantine/core';
import type { PreviewAnswer } from '@/experiment/data/answers';
import { duration } from '@/format/units';
import classes from './design.module.css';

interface Props {
  count: number;
  preview: PreviewAnswer | undefined;
  stale: boolean;
}

/** How many points there are, and how long they take. */
export function PreviewNumbers({ count, preview, stale }: Props) {
  const waiting = preview?.waiting ?? 0;
  const unknown = count === 0 ? '–' : '…';
  const known = preview !== undefined && !stale;
  const done = preview ? preview.num_points - waiting : 0;
  return (
    <div className={classes.numbers} data-testid="design-numbers" aria-live="polite">
      <span className={classes.number}>
        <b data-testid="num-points">{count.toLocaleString('en')}</b>
        {count === 1 ? 'point' : 'points'}
      </span>
      <span className={classes.number} data-testid="predict-time">
        {known && waiting === 0 ? (
          <b>all predicted</b>
        ) : (
          <>
            <b>{known && preview.predict_s !== null ? duration(preview.predict_s) : unknown}</b>
            to predict
          </>
        )}
      </span>
      <span className={classes.number}>
        <b data-testid="emulate-time">
          {preview?.emulate_s != null && !stale ? duration(preview.emulate_s) : unknown}
        </b>
        to emulate all
      </span>
      {(stale || waiting > 0) && (
        <span className={classes.number} data-testid="design-progress">
          <Loader size={12} mr={6} />
          {stale || !preview ? 'computing' : `${done} of ${preview.num_points} predicted`}
        </span>
      )}
    </div>
  );
}
