import { describe, expect, it } from 'vitest';

import { cluster, model } from '@/run/data/fixtures';
import { RunData } from '@/run/data/runData';
import { shifted, Viewport } from '@/run/timeline/viewport';
import { shifts_s, tokenTime_s } from './alignment';

describe('alignment', () => {
  it('finds a token of the first request by its number', () => {
    const data = new RunData(cluster, model);
    for (const [request, index, time_s] of [
      [0, 0, 1],
      [1, 1, 2],
      [0, 1, 3],
    ] as const)
      data.apply([
        { type: 'mark', name: 'token_emitted', device: 'a', time_s, facts: { request, index, token: 5 } },
      ]);
    expect([1, 2, 3].map((number) => tokenTime_s(data, number))).toEqual([1, 3, null]);
  });

  it('shows the moment of every run where the last one has it', () => {
    expect(shifts_s([1, 3, null])).toEqual([-2, 0, 0]);
    expect(shifts_s([])).toEqual([]);
  });
});

describe('a shifted viewport', () => {
  it('shows the same stretch in the times of its run, and moves with the others', () => {
    const shared = new Viewport(false);
    const own = shifted(shared, -2);
    shared.show('all', 8);
    expect([own.start_s, own.end_s]).toEqual([-2, 6]);
    own.zoom(0.5, -2);
    expect([shared.start_s, shared.end_s]).toEqual([0, 4]);
    own.pan(1);
    expect([shared.start_s, own.end_s]).toEqual([1, 3]);
    own.point(0.5);
    expect([shared.cursor_s, own.cursor_s]).toEqual([2.5, 0.5]);
    own.point(null);
    expect(shared.cursor_s).toBeNull();
    expect(own.version).toBe(shared.version);
  });
});
