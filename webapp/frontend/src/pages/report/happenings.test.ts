import { describe, expect, it } from 'vitest';
import { happenings } from './happenings';

const delay = { time_s: 0.65, name: 'link_changed', label: 'a–b 20 ms', by: 'ann' };
const reported = {
  at_s: 0.65,
  what: 'the delay of 20 ms on a–b',
  before_s: 0.1,
  after_s: 0.3,
  worst_s: 0.3,
};

function recorded(injections: (typeof delay)[]) {
  return { injections } as unknown as Parameters<typeof happenings>[1];
}

describe('what happened', () => {
  it('has a row per recorded change, with who made it and its effect on a token', () => {
    const [row] = happenings([reported], recorded([delay]));
    expect(row).toMatchObject({ time_s: 0.65, label: 'a–b 20 ms', by: 'ann' });
    expect(row!.effect!.before_s).toBeCloseTo(0.1);
    expect(row!.effect!.after_s).toBeCloseTo(0.3);
    expect(row!.effect!.worst_s).toBeCloseTo(0.3);
  });

  it('says of a new plan that the run made it by itself', () => {
    const scenario = { ...delay, by: '' };
    expect(happenings([reported], recorded([scenario]))[0]!.by).toBe('the scenario');
    const plan = { time_s: 0.7, name: 'replanned', label: 'new plan: b failed', by: '' };
    expect(happenings([reported], recorded([delay, plan])).map(({ by }) => by)).toEqual(['ann', 'the run']);
  });

  it('is told from the report until the recording is read, and where the recording lacks changes', () => {
    for (const without of [undefined, recorded([])]) {
      expect(happenings([reported], without)).toEqual([
        {
          key: '0',
          time_s: 0.65,
          label: 'The delay of 20 ms on a–b',
          by: '',
          effect: { before_s: 0.1, after_s: 0.3, worst_s: 0.3 },
          rest: null,
        },
      ]);
    }
  });

  it('has what was predicted from there on beside the last of several changes', () => {
    const plan = { time_s: 0.7, name: 'replanned', label: 'new plan: b failed', by: '' };
    const later = { ...delay, time_s: 0.66 };
    const rest = { at_s: 0.8, changes: 2, left_s: 1, latency_s: 1.8 };
    const rows = happenings([reported], recorded([delay, later, plan]), [rest]);
    expect(rows.map((row) => row.rest)).toEqual([null, rest, null]);
  });

  it('has no effect where no token came on one side', () => {
    const late = { ...reported, before_s: 0.1, after_s: null, worst_s: null };
    expect(happenings([late], undefined)[0]!.effect).toBeNull();
  });
});
