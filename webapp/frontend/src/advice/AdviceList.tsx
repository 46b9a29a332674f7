import { Text } from '@mantine/core';
import type { Assessment, Objective, StrategyRow } from '@/api/types';
import { between } from '@/format/units';
import classes from './advice.module.css';
import { barOf, figureOf, goalOf, rankedBy } from './objectives';

interface Props {
  rows: readonly Assessment[];
  strategies: readonly StrategyRow[];
  by: Objective;
  /** The rows are of an earlier cluster: others are being computed. */
  stale: boolean;
}

/** The strategies, the best first: figure, bar, and one sentence of reason. */
export function AdviceList({ rows, strategies, by, stale }: Props) {
  const goal = goalOf(by);
  const able = rankedBy(rows, by).filter((row) => figureOf(row, by) !== null && !row.like);
  const unable = rows.filter((row) => figureOf(row, by) === null);
  const likeIt = ({ strategy }: Assessment) => rows.filter((row) => row.like === strategy);
  const titleOf = (name: string) => strategies.find((row) => row.name === name)?.title ?? name;
  return (
    <div className={stale ? classes.stale : undefined} data-testid="advice" data-stale={stale || undefined}>
      <ol className={classes.list}>
        {able.map((row) => (
          <li key={row.strategy} data-testid={`advice-${row.strategy}`}>
            <div className={classes.line}>
              <b title={titleOf(row.strategy)}>{titleOf(row.strategy)}</b>
              <span>{goal.text(figureOf(row, by) ?? 0)}</span>
            </div>
            <div className={classes.line}>
              {row.fast[by] !== undefined && row.slow[by] !== undefined && (
                <small title={row.basis} data-testid={`interval-${row.strategy}`}>
                  on real boards {between(row.fast[by], row.slow[by], goal.text)}
                </small>
              )}
            </div>
            <div className={classes.track}>
              <div className={classes.fill} style={{ width: `${100 * barOf(row, rows, by)}%` }} />
            </div>
            <small>
              {row.reason}
              {!row.lossless && ' Lossy: it may change the output.'}
              {likeIt(row).length > 0 &&
                ` The same plan: ${likeIt(row)
                  .map((other) => titleOf(other.strategy))
                  .join(', ')}.`}
            </small>
          </li>
        ))}
      </ol>
      {unable.length > 0 && (
        <details style={{ marginTop: 12 }}>
          <summary>
            <Text span size="xs" c="dimmed" style={{ cursor: 'pointer' }}>
              {unable.length} {unable.length === 1 ? 'method' : 'methods'} {lack(unable)}: why?
            </Text>
          </summary>
          <ul className={classes.list} style={{ marginTop: 8 }}>
            {unable.map((row) => (
              <li key={row.strategy} className={classes.none} data-testid={`advice-${row.strategy}`}>
                <div className={classes.line}>
                  <b>{titleOf(row.strategy)}</b>
                </div>
                <small>{row.reason}</small>
              </li>
            ))}
          </ul>
        </details>
      )}
    </div>
  );
}

/** What the methods without a figure lack: a plan, or this figure alone. */
function lack(rows: readonly Assessment[]): string {
  if (rows.every(({ total_s }) => total_s === null)) return 'cannot run';
  return 'without this figure';
}
