import type { StrategyRow } from '@/api/types';
import classes from './newRun.module.css';

interface Props {
  strategies: StrategyRow[];
  strategy: string;
  /** By strategy the reason why it cannot run this model on this cluster; null if it can. */
  reasons: Readonly<Record<string, string | null>>;
  onChoose: (name: string) => void;
}

/** The strategies, each with its summary and its paper. */
export function StrategyPicker({ strategies, strategy, reasons, onChoose }: Props) {
  return (
    <div className={classes.strategies} role="radiogroup" aria-label="Strategy">
      {strategies.map(({ name, title, summary, paper, lossless }) => (
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
          {reasons[name] && (
            <small className={classes.reason} data-testid={`reason-${name}`}>
              Not here: {reasons[name]}
            </small>
          )}
          <small style={{ marginTop: 'auto', paddingTop: 4, fontStyle: 'italic' }}>
            {[paper || 'The baseline', !lossless && 'changes the result'].filter(Boolean).join(' · ')}
          </small>
        </button>
      ))}
    </div>
  );
}
