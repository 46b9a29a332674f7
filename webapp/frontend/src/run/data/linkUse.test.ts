import { describe, expect, it } from 'vitest';
import { cluster, model } from './fixtures';
import { describeConditions, describeRate, utilisation } from './linkUse';
import { RunData, type DirectionData } from './runData';
import { takeSnapshot, type LinkView } from './snapshot';

const side = (fields: Partial<DirectionData> = {}): DirectionData => ({
  use_bit_per_s: 0,
  set_bit_per_s: 1e8,
  measured_bit_per_s: null,
  delay_s: 0,
  loss_frac: 0,
  ...fields,
});
const link = (forward: DirectionData, backward: DirectionData): LinkView => ({
  name: 'a--b',
  jitter_s: 0,
  a: 'a',
  b: 'b',
  up: true,
  forward,
  backward,
  changes: 0,
});

describe('utilisation', () => {
  it('is the rate in use over the rate that is set', () => {
    expect(utilisation(side({ use_bit_per_s: 25e6 }))).toBe(0.25);
  });

  it('never exceeds 1, and is 0 for a link without a rate', () => {
    expect(utilisation(side({ use_bit_per_s: 3e8 }))).toBe(1);
    expect(utilisation(side({ set_bit_per_s: 0, use_bit_per_s: 5 }))).toBe(0);
  });

  it('of a link sample is that of the direction it names, in bits as they came', () => {
    const data = new RunData(cluster, model);
    const sample = { link: 0, forward: true, bit_per_s: 12.5e6, set_bit_per_s: 1e8, up: true };
    data.apply([{ type: 'links', time_s: 1, links: [{ ...sample, measured_bit_per_s: 97e6 }] }]);
    const view = takeSnapshot(data, 1, 1).links[0]!;
    expect(view.forward.use_bit_per_s).toBe(12.5e6);
    expect(utilisation(view.forward)).toBe(0.125);
    expect(utilisation(view.backward)).toBe(0);
  });
});

describe('the words for a link', () => {
  it('give one value where the directions agree and two where they differ', () => {
    expect(describeRate(link(side(), side()))).toBe('100 Mbit/s');
    expect(describeRate(link(side(), side({ set_bit_per_s: 5e6 })))).toBe('100 Mbit/s / 5 Mbit/s');
    const slow = link(side({ delay_s: 0.02 }), side({ delay_s: 0.02, loss_frac: 0.01 }));
    expect(describeConditions(slow)).toBe('delay 20 ms · packet loss 0 % / 1 %');
    expect(describeConditions(link(side(), side()))).toBe('');
    expect(describeConditions({ ...link(side(), side()), jitter_s: 0.004 })).toBe('jitter ± 4 ms');
  });
});
