import { describe, expect, it } from 'vitest';
import type { RowAnswer } from './answers';
import { differing, merged } from './rows';

function row(index: number, world: 'predicted' | 'emulated', more: Partial<RowAnswer> = {}): RowAnswer {
  return {
    index,
    world,
    state: 'waiting',
    coordinates: { strategy: 'single', rate: 1e7 },
    seed: 0,
    digest: `d${index}`,
    outcome: null,
    reason: '',
    alone: '',
    metrics: {},
    run_id: null,
    wall_s: null,
    code_version: '',
    calibration: '',
    stale: '',
    ...more,
  };
}

describe('rows that are kept up to date', () => {
  it('are replaced by point and world, and stay in the order of the points', () => {
    const old = [row(0, 'predicted'), row(1, 'predicted')];
    const now = merged(old, [row(1, 'emulated'), row(0, 'predicted', { state: 'done' })]);
    expect(now.map(({ index, world, state }) => [index, world, state])).toEqual([
      [0, 'predicted', 'done'],
      [1, 'emulated', 'waiting'],
      [1, 'predicted', 'waiting'],
    ]);
  });
});

describe('what differs among rows', () => {
  it('is shown, and what they share is not; a coordinate that one lacks differs', () => {
    const other = row(1, 'emulated', { coordinates: { strategy: 'voltage', rate: 1e7, devices: 0 } });
    expect(differing([row(0, 'predicted'), other])).toEqual([
      { name: 'strategy', values: ['single', 'voltage'] },
      { name: 'world', values: ['predicted', 'emulated'] },
      { name: 'devices', values: [undefined, 0] },
    ]);
  });
});
