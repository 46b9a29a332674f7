import { describe, expect, it } from 'vitest';
import type { Plan } from '@/api/types';
import {
  amount,
  type Division,
  divisionOf,
  fromParam,
  toParam,
  total,
  type Unit,
  withAmount,
  withBoundary,
} from './division';

const stages: Division = {
  kind: 'stages',
  shares: [
    { device: 'a', layers: 3 },
    { device: 'b', layers: 2 },
    { device: 'c', layers: 1 },
  ],
};
const amounts = (division: Division, unit: Unit = 'layers') =>
  division.shares.map((share) => amount(share, unit));
const planWith = (layout: unknown) =>
  ({ version: 0, strategy: 'x', holdings: [], work: [], layout }) as unknown as Plan;

describe('a division by hand', () => {
  it('gives a device more and takes it from those behind it', () => {
    expect(amounts(withAmount(stages, 'layers', 0, 4))).toEqual([4, 1, 1]);
    expect(amounts(withAmount(stages, 'layers', 0, 6))).toEqual([6, 0, 0]);
    expect(amounts(withAmount(stages, 'layers', 1, 0))).toEqual([3, 0, 3]);
  });

  it('takes what the last device gets from those before it', () => {
    expect(amounts(withAmount(stages, 'layers', 2, 4))).toEqual([2, 0, 4]);
    expect(amounts(withAmount(stages, 'layers', 2, 0))).toEqual([3, 3, 0]);
  });

  it('never changes the total, whatever is typed', () => {
    for (const index of [0, 1, 2])
      for (const wanted of [-3, 0, 1.4, 5, 99]) {
        const found = withAmount(stages, 'layers', index, wanted);
        expect(total(found, 'layers')).toBe(6);
        expect(amounts(found).every((one) => one >= 0)).toBe(true);
      }
  });

  it('moves a boundary between its neighbours only', () => {
    expect(amounts(withBoundary(stages, 'layers', 0, 1))).toEqual([1, 4, 1]);
    expect(amounts(withBoundary(stages, 'layers', 0, 6))).toEqual([5, 0, 1]);
    expect(amounts(withBoundary(stages, 'layers', 1, 2))).toEqual([3, 0, 3]);
  });

  it('is read from a plan, with the devices that have no share', () => {
    const pipeline = planWith({
      kind: 'pipeline',
      stages: [
        { device: 1, start: 0, stop: 4 },
        { device: 0, start: 4, stop: 6 },
      ],
    });
    expect(divisionOf(pipeline, ['a', 'b', 'c'], ['a', 'b', 'c'])?.shares).toEqual([
      { device: 'b', layers: 4 },
      { device: 'a', layers: 2 },
      { device: 'c', layers: 0 },
    ]);
    const split = planWith({
      kind: 'tensor_parallel',
      group: [0, 2],
      heads: [0, 3, 8],
      columns: [0, 40, 64],
    });
    expect(divisionOf(split, ['a', 'b', 'c'], ['a', 'c'])?.shares).toEqual([
      { device: 'a', heads: 3, columns: 40 },
      { device: 'c', heads: 5, columns: 24 },
    ]);
    expect(divisionOf(planWith({ kind: 'slots' }), ['a'], ['a'])).toBeNull();
  });

  it('goes to the parameter and back', () => {
    expect(toParam(stages)).toEqual({ kind: 'stages', stages: stages.shares });
    expect(fromParam(toParam(stages))).toEqual(stages);
    for (const none of [null, undefined, 'x', {}, { kind: 'other' }]) expect(fromParam(none)).toBeNull();
  });
});
