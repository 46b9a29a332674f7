import { describe, expect, it } from 'vitest';
import type { PlanByHand } from '@/api/types';
import {
  alone,
  amount,
  completed,
  furtherOf,
  moved,
  toParam,
  total,
  type Unit,
  type UnitSize,
  withAmount,
  withBoundary,
} from './handPlan';
import { fromParam } from '@/run/params/plan';

const LAYERS: UnitSize = { name: 'layers', whole: 6, step: 1 };
const HEADS: UnitSize = { name: 'heads', whole: 8, step: 2 };
const planOf = (devices: object[], more: object = {}) => ({ devices, ...more }) as unknown as PlanByHand;
const stages = planOf([
  { device: 'a', layers: 3 },
  { device: 'b', layers: 2 },
  { device: 'c', layers: 1 },
]);
const amounts = (plan: PlanByHand, unit: Unit = 'layers') => plan.devices.map((share) => amount(share, unit));

describe('a plan made by hand', () => {
  it('gives a device more and takes it from those behind it', () => {
    expect(amounts(withAmount(stages, LAYERS, 0, 4))).toEqual([4, 1, 1]);
    expect(amounts(withAmount(stages, LAYERS, 0, 6))).toEqual([6, 0, 0]);
    expect(amounts(withAmount(stages, LAYERS, 1, 0))).toEqual([3, 0, 3]);
  });

  it('takes what the last device gets from those before it', () => {
    expect(amounts(withAmount(stages, LAYERS, 2, 4))).toEqual([2, 0, 4]);
    expect(amounts(withAmount(stages, LAYERS, 2, 0))).toEqual([3, 3, 0]);
  });

  it('never changes the total, whatever is typed', () => {
    for (const index of [0, 1, 2])
      for (const wanted of [-3, 0, 1.4, 5, 99]) {
        const found = withAmount(stages, LAYERS, index, wanted);
        expect(total(found, 'layers')).toBe(6);
        expect(amounts(found).every((one) => one >= 0)).toBe(true);
      }
  });

  it('moves a boundary between its neighbours only', () => {
    expect(amounts(withBoundary(stages, LAYERS, 0, 1))).toEqual([1, 4, 1]);
    expect(amounts(withBoundary(stages, LAYERS, 0, 6))).toEqual([5, 0, 1]);
    expect(amounts(withBoundary(stages, LAYERS, 1, 2))).toEqual([3, 0, 3]);
  });

  it('moves units from one device to any other, as many as it has', () => {
    expect(amounts(moved(stages, LAYERS, 'a', 'c', 2))).toEqual([1, 2, 3]);
    expect(amounts(moved(stages, LAYERS, 'c', 'a', 5))).toEqual([4, 2, 0]);
    expect(moved(stages, LAYERS, 'a', 'a', 1)).toBe(stages);
    expect(moved(stages, LAYERS, 'a', 'x', 1)).toBe(stages);
    expect(amounts(alone(stages, LAYERS, 'b'))).toEqual([0, 6, 0]);
  });

  it('divides in whole steps', () => {
    const heads = planOf([
      { device: 'a', heads: 4 },
      { device: 'b', heads: 4 },
    ]);
    expect(amounts(withAmount(heads, HEADS, 0, 5.2), 'heads')).toEqual([6, 2]);
    expect(amounts(withBoundary(heads, HEADS, 0, 4.9), 'heads')).toEqual([4, 4]);
    expect(amounts(moved(heads, HEADS, 'a', 'b', 1), 'heads')).toEqual([2, 6]);
  });

  it('changes a limit of one device alone', () => {
    const lent: UnitSize = { name: 'lent_heads', whole: null, step: 1 };
    const plan = planOf([
      { device: 'a', layers: 6, lent_heads: 2 },
      { device: 'b', lent_heads: 3 },
    ]);
    expect(amounts(withAmount(plan, lent, 0, 7), 'lent_heads')).toEqual([7, 3]);
  });

  it('lets the strategy choose anew what depended on a changed share', () => {
    const plan = planOf(
      [
        { device: 'a', layers: 4, streams: ['layer'] },
        { device: 'b', layers: 2, streams: ['ffn'] },
        { device: 'c', layers: 0, streams: [] },
      ],
      { segments: 2, backups: [] },
    );
    const after = moved(plan, LAYERS, 'a', 'b', 1);
    expect(after.devices.map(({ streams }) => streams)).toEqual([null, null, []]);
    expect([after.segments, after.backups]).toEqual([null, null]);
    expect(furtherOf(plan)).toEqual(['segments: 2', 'a streams layer per stage', 'b streams ffn per stage']);
  });

  it('goes to the parameter without devices that have nothing, and back with all workers', () => {
    const plan = completed(stages, ['a', 'b', 'c', 'd']);
    expect(plan.devices.map(({ device }) => device)).toEqual(['a', 'b', 'c', 'd']);
    expect(toParam(plan)).toEqual({ devices: stages.devices });
    expect(fromParam(toParam(plan))).toEqual(stages);
    for (const none of [null, undefined, 'x', {}, { devices: [] }, { devices: [1] }])
      expect(fromParam(none)).toBeNull();
  });

  it('keeps the primary of a plan of columns, which may have none, and no other device without a share', () => {
    const columns = planOf([
      { device: 'a', columns: 0 },
      { device: 'b', columns: 8 },
      { device: 'c', columns: 0 },
    ]);
    expect(toParam(columns)).toEqual({ devices: [{ device: 'a' }, { device: 'b', columns: 8 }] });
    const layers = planOf([
      { device: 'a', layers: 0 },
      { device: 'b', layers: 8 },
    ]);
    expect(toParam(layers)).toEqual({ devices: [{ device: 'b', layers: 8 }] });
  });
});
