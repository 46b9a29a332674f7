import { Text } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { seconds } from '@/format/units';
import classes from './plan.module.css';

/** What a plan made by hand changes against the strategy's own. */
export function Effect({
  before,
  after,
  waiting,
}: {
  before: RunReport | undefined;
  after: RunReport | undefined;
  waiting: boolean;
}) {
  if (!after || !before)
    return (
      <Text size="sm" c="dimmed" data-testid="plan-effect">
        {waiting ? 'Predicting …' : after ? 'The strategy has no plan of its own here.' : 'No prediction.'}
      </Text>
    );
  const generates = after.spec.workload.new_tokens > 0;
  const rows: [string, number | null, number | null][] = [
    [generates ? 'First token' : 'First result', before.ttft_s, after.ttft_s],
    ['Per token', before.tpot_s || null, after.tpot_s || null],
    ['All requests', before.latency_s, after.latency_s],
  ];
  return (
    <div className={classes.effect} data-testid="plan-effect" data-waiting={waiting || undefined}>
      {rows.map(([label, old, now]) =>
        old === null || now === null ? null : (
          <div key={label}>
            <span>{label}</span>
            <strong>
              {seconds(old)} → {seconds(now)}
            </strong>
            <em data-better={now < 0.995 * old || undefined} data-worse={now > 1.005 * old || undefined}>
              {comparison(old, now)}
            </em>
          </div>
        ),
      )}
    </div>
  );
}

function comparison(old: number, now: number): string {
  const change = now / old - 1;
  if (Math.abs(change) < 0.005) return 'as with the strategy’s own plan';
  return `${(100 * Math.abs(change)).toFixed(0)} % ${change > 0 ? 'longer' : 'shorter'} than its own plan`;
}
