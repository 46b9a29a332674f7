import { describe, expect, it } from 'vitest';
import type { LayoutOf, Mark } from '@/api/types';
import { bandsNow } from './bands';

const layout = {
  causal_trim: true,
  shards: [
    { device: 0, start: 0, stop: 6, keys_stop: 6 },
    { device: 1, start: 6, stop: 12, keys_stop: 12 },
  ],
} as unknown as LayoutOf<'positions'>;

const mark = (bounds: number[]): Mark => ({
  time_s: 1,
  name: 'repartitioned',
  device: 'a',
  facts: { bounds },
});

describe('bandsNow', () => {
  it('is the plan before any new division', () => {
    expect(bandsNow(layout, true, [])).toEqual(layout.shards);
  });

  it('has the bounds of the newest division, and the keys that they need', () => {
    const now = bandsNow(layout, true, [mark([0, 3, 12]), mark([0, 9, 12])]);
    expect(now.map(({ start, stop, keys_stop }) => [start, stop, keys_stop])).toEqual([
      [0, 9, 9],
      [9, 12, 12],
    ]);
    expect(bandsNow(layout, false, [mark([0, 9, 12])]).map((band) => band.keys_stop)).toEqual([12, 12]);
  });
});
