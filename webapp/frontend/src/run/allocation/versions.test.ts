import { describe, expect, it } from 'vitest';
import type { Plan } from '@/api/types';
import { versionsOf } from './versions';

const plan = (strategy: string): Plan => ({
  version: 0,
  strategy,
  holdings: [],
  work: [],
  layout: { kind: 'single', device: 0 },
});
const [first, second, now] = [plan('first'), plan('second'), plan('now')];
const made = [
  { time_s: 0, reason: '', plan: first },
  { time_s: 2.5, reason: 'b failed.', plan: second },
];

describe('versionsOf', () => {
  it('is one version while the first plan is in force', () => {
    expect(versionsOf(first, made.slice(0, 1), false)).toEqual([{ label: 'Now', about: '', plan: first }]);
    expect(versionsOf(first, [], false)).toHaveLength(1);
  });

  it('has the first plan and the newest one, which says when and why it was made', () => {
    const [planned, last, ...more] = versionsOf(second, made, true);
    expect(more).toEqual([]);
    expect(planned).toMatchObject({ label: 'Planned', plan: first });
    expect(last).toEqual({ label: 'Final', about: 'new plan at 2.500 s: b failed.', plan: second });
  });

  it('has the plan that its method has changed beside the one that was made', () => {
    const labels = versionsOf(now, made, false).map(({ label }) => label);
    expect(labels).toEqual(['Planned', '2.500 s', 'Now']);
    expect(versionsOf(now, made.slice(0, 1), false).map((one) => one.plan)).toEqual([first, now]);
  });
});
