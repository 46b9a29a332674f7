import { describe, expect, it } from 'vitest';
import type { LayoutOf, Mark } from '@/api/types';
import { stateOf } from './shares';

const mark = (time_s: number, name: string, facts: Mark['facts']): Mark => ({
  time_s,
  name,
  device: 'a',
  facts,
});

const layout = {
  kind: 'shares',
  shards: [
    [0, 0, 4],
    [1, 4, 8],
  ],
  backups: { 1: [[2, 4, 8]] },
  epoch: 0,
} as unknown as LayoutOf<'shares'>;

const ranks = (pieces: readonly { rank: number }[]) => pieces.map((piece) => piece.rank);

const promoted = mark(2, 'promoted', {
  lost: 1,
  backups: [[2, 4, 8]],
  epoch: 1,
  serving: [[2, 4, 8]],
  copies: [],
});

describe('stateOf', () => {
  it('is the plan as long as nothing happens', () => {
    const state = stateOf(layout, [], 0, new Set());
    expect(ranks(state.serving)).toEqual([0, 1]);
    expect(ranks(state.copies)).toEqual([2]);
    expect(state.coverage).toBe(1);
  });

  it('leaves a promoted backup without a copy: a device is no backup of itself', () => {
    const state = stateOf(layout, [promoted], 0, new Set([1]));
    expect(ranks(state.serving)).toEqual([0, 2]);
    expect(state.copies).toEqual([]);
    expect(state.coverage).toBe(0);
    expect(state.epoch).toBe(1);
  });

  it('is covered again when another device has loaded a copy', () => {
    const copied = mark(3, 'copied', { serving: [[2, 4, 8]], copies: [[3, 4, 8]], epoch: 2 });
    const state = stateOf(layout, [promoted, copied], 0, new Set([1]));
    expect(ranks(state.copies)).toEqual([3]);
    expect(state.coverage).toBe(1);
    expect(state.epoch).toBe(2);
  });

  it('does not count the copies of a failed device, even before the primary notices', () => {
    expect(stateOf(layout, [], 0, new Set([2])).coverage).toBe(0);
  });

  it('forgets what happened under an earlier plan', () => {
    const state = stateOf(layout, [promoted], 2.5, new Set());
    expect(ranks(state.serving)).toEqual([0, 1]);
    expect(state.epoch).toBe(0);
  });

  it('reads promotions of earlier versions, which did not say who serves', () => {
    const old = mark(2, 'promoted', { lost: 1, backups: [[2, 4, 8]], epoch: 1 });
    const state = stateOf(layout, [old], 0, new Set([1]));
    expect(ranks(state.serving)).toEqual([0, 2]);
    expect(state.coverage).toBe(0);
  });
});
