import { Anchor, SegmentedControl, Text, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import { useState } from 'react';
import type { Assessment, Objective, StrategyRow } from '@/api/types';
import { barOf, goalOf, GOALS } from '@/advice/objectives';
import { bytes, percent } from '@/format/units';
import { grouped } from './strategyRows';
import classes from './strategies.module.css';

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

/** The strategies as a list, those of the papers first: predicted figure, bytes on links, fullest memory; one
 * that cannot run has its reason instead. The baselines are folded unless one of them is chosen. */
export function StrategyPicker(props: Props) {
  const { strategies, strategy, reasons, advice, by, onBy } = props;
  const ranked = grouped(strategies, advice, reasons, by);
  // An answer does not put another row below the pointer.
  const [held, setHeld] = useState<typeof ranked | null>(null);
  const [methods, baselines] = held ?? ranked;
  const chosen = strategies.find(({ name }) => name === strategy);
  const [opened, setOpened] = useState(false);
  const isFolded = Boolean(chosen?.is_baseline && !chosen.origin);
  const open = opened || isFolded;
  const Arrow = open ? IconChevronDown : IconChevronRight;
  return (
    <>
      <SegmentedControl
        size="xs"
        mb="xs"
        value={by}
        data={GOALS.map(({ key, title }) => ({ value: key, label: title }))}
        onChange={(value) => onBy(value as Objective)}
        data-testid="rank-by"
        aria-label="Strategies ranked by"
      />
      <div
        role="radiogroup"
        aria-label="Strategy"
        onPointerEnter={() => setHeld(ranked)}
        onPointerLeave={() => setHeld(null)}
      >
        <div className={classes.head} aria-hidden>
          <span>Methods of the papers</span>
          <span>{goalOf(by).title}</span>
          <span>On links</span>
          <span>Fullest memory</span>
        </div>
        <Rows {...props} rows={methods} />
        <UnstyledButton
          className={classes.fold}
          onClick={() => setOpened(!open)}
          aria-expanded={open}
          disabled={isFolded}
          data-testid="baselines"
        >
          <Arrow size={15} /> {baselines.length} baselines
        </UnstyledButton>
        {open && <Rows {...props} rows={baselines} />}
      </div>
      {chosen && (
        <Text size="sm" c="dimmed" mt="sm" data-testid="strategy-about">
          {chosen.summary} {!chosen.lossless && 'Lossy: it may change the output. '}
          <i>{chosen.paper}</i>
        </Text>
      )}
    </>
  );
}

/** "25 %" of 4 for 3, never all of it. */
const savedText = (less: number, of: number) => `${Math.min(99, Math.round(100 * (1 - less / of)))} %`;

interface BestPlannerProps {
  /** What the chosen strategy would do here. */
  row: Assessment | undefined;
  onPlan: () => void;
}

/** What planner=best would give the chosen strategy, and a way to it; nothing where it gives nothing. */
export function BestPlanner({ row, onPlan }: BestPlannerProps) {
  if (row?.best_planner_s == null) return null;
  return (
    <span data-testid="best-planner">
      {row.total_s === null
        ? 'It has a plan with planner=best.'
        : `A better split (planner=best) would save ${savedText(row.best_planner_s, row.total_s)} of the time.`}{' '}
      <Anchor component="button" type="button" inherit onClick={onPlan} data-testid="use-best-planner">
        Use it
      </Anchor>
    </span>
  );
}

function Rows({ rows, strategy, reasons, advice, stale, by, onChoose }: Props & { rows: StrategyRow[] }) {
  return rows.map(({ name, title, lossless, summary, origin }) => {
    const row = advice?.find((each) => each.strategy === name);
    const reason = reasons[name];
    return (
      <button
        key={name}
        type="button"
        role="radio"
        aria-checked={name === strategy}
        className={classes.row}
        aria-disabled={Boolean(reason) || undefined}
        onClick={() => reason || onChoose(name)}
        data-testid={`strategy-${name}`}
        title={reason ?? summary}
      >
        <span className={classes.title}>
          <b>{title}</b>
          {!lossless && <small> lossy</small>}
          {origin && <small> {origin}</small>}
          {row?.devices.length === 1 && !stale && <small> on {row.devices[0]} alone</small>}
        </span>
        {reason ? (
          <small className={classes.reason} data-testid={`reason-${name}`}>
            Not here: {reason}
          </small>
        ) : (
          row && <Advised row={row} rows={advice ?? []} by={by} stale={stale} isChosen={name === strategy} />
        )}
      </button>
    );
  });
}

interface AdvisedProps {
  row: Assessment;
  rows: readonly Assessment[];
  by: Objective;
  stale: boolean;
  /** The form says why the chosen one has no prediction. */
  isChosen: boolean;
}

function Advised({ row, rows, by, stale, isChosen }: AdvisedProps) {
  const figure = row[by] ?? null;
  const full = row.peak_memory_frac;
  const shown = {
    'data-testid': `advised-${row.strategy}`,
    'data-stale': stale || undefined,
    className: `${classes.advised} ${stale ? classes.stale : ''}`,
  };
  if (figure === null)
    return (
      <span {...shown}>
        <small className={classes.reason}>{isChosen ? 'No prediction' : row.reason}</small>
      </span>
    );
  return (
    <span {...shown} title={row.reason}>
      <span className={classes.figure}>
        <span className={classes.bar} style={{ width: `${100 * barOf(row, rows, by)}%` }} />
        {goalOf(by).text(figure)}
      </span>
      <span>{row.link_bytes === null ? '–' : bytes(row.link_bytes)}</span>
      <span>{full === null ? '–' : `${percent(Number(full.toPrecision(2)))} of ${row.fullest}`}</span>
    </span>
  );
}
