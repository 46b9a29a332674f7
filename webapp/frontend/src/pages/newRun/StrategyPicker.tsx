import { SegmentedControl } from '@mantine/core';
import type { Assessment, Objective, StrategyRow } from '@/api/types';
import { figureOf, goalOf, GOALS, rankedBy } from '@/advice/objectives';
import classes from './newRun.module.css';

interface Props {
  strategies: StrategyRow[];
  strategy: string;
  /** By strategy the reason why it cannot run this model on this cluster; null if it can. */
  reasons: Readonly<Record<string, string | null>>;
  /** What each would do here by prediction; undefined until the advisor has answered. */
  advice: readonly Assessment[] | undefined;
  stale: boolean;
  by: Objective;
  onBy: (by: Objective) => void;
  onChoose: (name: string) => void;
}

/** The strategies, the best for `by` first, each with its prediction, what limits it, its summary and paper. */
export function StrategyPicker({ strategies, strategy, reasons, advice, stale, by, onBy, onChoose }: Props) {
  const order = advice && rankedBy(advice, by).map((row) => row.strategy);
  const sorted = order
    ? strategies.toSorted((a, b) => order.indexOf(a.name) - order.indexOf(b.name))
    : strategies;
  return (
    <>
      <SegmentedControl
        size="xs"
        mb="sm"
        value={by}
        data={GOALS.map(({ key, title }) => ({ value: key, label: title }))}
        onChange={(value) => onBy(value as Objective)}
        data-testid="rank-by"
        aria-label="Strategies ranked by"
      />
      <div className={classes.strategies} role="radiogroup" aria-label="Strategy">
        {sorted.map(({ name, title, summary, paper, lossless }) => {
          const row = advice?.find((each) => each.strategy === name);
          return (
            <button
              key={name}
              type="button"
              role="radio"
              aria-checked={name === strategy}
              className={classes.option}
              aria-disabled={Boolean(reasons[name]) || undefined}
              onClick={() => reasons[name] || onChoose(name)}
              data-testid={`strategy-${name}`}
            >
              <b>{title}</b>
              <small>{summary}</small>
              {reasons[name] ? (
                <small className={classes.reason} data-testid={`reason-${name}`}>
                  Not here: {reasons[name]}
                </small>
              ) : (
                row && <Advised row={row} by={by} stale={stale} />
              )}
              <small style={{ marginTop: 'auto', paddingTop: 4, fontStyle: 'italic' }}>
                {[paper || 'The baseline', !lossless && 'changes the result'].filter(Boolean).join(' · ')}
              </small>
            </button>
          );
        })}
      </div>
    </>
  );
}

function Advised({ row, by, stale }: { row: Assessment; by: Objective; stale: boolean }) {
  const figure = figureOf(row, by);
  return (
    <small
      className={`${classes.advised} ${stale ? classes.stale : ''}`}
      data-testid={`advised-${row.strategy}`}
      data-stale={stale || undefined}
    >
      {figure !== null && <span>{goalOf(by).text(figure)}</span>}
      <span style={{ color: 'var(--loom-dim)' }}>{row.reason}</span>
    </small>
  );
}
