import { Tooltip } from '@mantine/core';
import type { Outcome, Recovery } from '@/api/types';
import { seconds } from '@/format/units';
import { Legend } from '@/components/Legend';
import { Panel } from '@/components/Panel';
import { spanColors } from '@/theme/spanColors';
import type { LiveRecovery } from '@/run/data/recoveries';
import chartClasses from '@/run/charts/charts.module.css';
import classes from './panels.module.css';

const STEPS = [
  { key: 'detect_s', label: 'detect', color: 'var(--loom-bad)' },
  { key: 'replan_s', label: 're-plan', color: spanColors.stage },
  { key: 'reload_s', label: 'reload', color: spanColors.load },
  { key: 'rebuild_s', label: 'rebuild', color: spanColors.compute },
] as const;

const HOW: Record<Recovery['how'], string> = {
  killed: 'was killed',
  frozen: 'went silent',
  unreachable: 'was cut off',
  joined: 'joined',
};

type Disturbance = Recovery | LiveRecovery;

interface Props {
  recoveries: readonly Disturbance[];
  /** How the run would have ended without new plans; null if not known. */
  without: Outcome | null;
  /** How the run ended; null while it goes on. */
  outcome: Outcome | null;
}

/** Every failure and every join of a device: seconds to detect it, plan, load weights and emit the next token. */
export function RecoveryPanel({ recoveries, without, outcome }: Props) {
  if (recoveries.length === 0) return null;
  const longest = Math.max(...recoveries.map(totalOf), 1e-9);
  return (
    <Panel title="Recoveries" testId="recoveries" about="from the fault to the next token, in virtual time">
      <div className={classes.recoveries}>
        {recoveries.map((one, at) => (
          <Line
            key={`${one.device} ${one.at_s}`}
            recovery={one}
            longest={longest}
            at={at}
            over={outcome !== null}
            next={recoveries[at + 1]}
          />
        ))}
      </div>
      <Legend entries={STEPS.map(({ label, color }) => ({ label, color }))} />
      {without && outcome && recoveries.some((one) => one.replanned) && (
        <p className={classes.without} data-testid="without-replan">
          <b>Without re-planning</b> the run {ending(without)} <b>With it</b> the run {ending(outcome)}
        </p>
      )}
    </Panel>
  );
}

function ending({ kind, sentence, time_s }: Outcome): string {
  const when = time_s ? ` at ${seconds(time_s)}` : '';
  return `${kind === 'finished' ? 'finishes' : 'stops'}${when}${sentence ? `: ${sentence}` : '.'}`;
}

function Line({
  recovery,
  longest,
  at,
  over,
  next,
}: {
  recovery: Disturbance;
  longest: number;
  at: number;
  over: boolean;
  next: Disturbance | undefined;
}) {
  return (
    <>
      <span className={classes.recoveryName} data-testid={`recovery-${at}`}>
        <b>{recovery.device}</b> {HOW[recovery.how]} at {recovery.at_s.toFixed(3)} s
      </span>
      <div className={chartClasses.stack} style={{ height: 18 }}>
        {STEPS.map(({ key, label, color }) => {
          const value = recovery[key];
          return (
            value !== null &&
            value > 0 && (
              <Tooltip key={key} label={`${label}: ${seconds(value)}`}>
                <div
                  style={{ width: `${(value / longest) * 100}%`, background: color }}
                  data-testid={`recovery-${at}-${key}`}
                />
              </Tooltip>
            )
          );
        })}
      </div>
      <span className={classes.recoverySteps}>{stepsOf(recovery, over, next)}</span>
    </>
  );
}

/** The steps in words, with the one that is not finished: the next disturbance may have come before a token. */
function stepsOf(recovery: Disturbance, over: boolean, next: Disturbance | undefined): string {
  const done = STEPS.flatMap(({ key, label }) => {
    const value = recovery[key];
    return value === null || (value === 0 && key !== 'rebuild_s') ? [] : [`${label} ${seconds(value)}`];
  });
  const open = next
    ? `${next.device} ${HOW[next.how]} before another token came`
    : over
      ? 'no token came after it'
      : 'going on…';
  const end = recovery.rebuild_s === null ? open : `${seconds(totalOf(recovery))} in all`;
  const coped = recovery.replanned || recovery.rebuild_s === null ? [] : ['same plan'];
  return [...done, ...coped, end].join(' · ');
}

function totalOf(recovery: Disturbance): number {
  return STEPS.reduce((sum, { key }) => sum + (recovery[key] ?? 0), 0);
}
