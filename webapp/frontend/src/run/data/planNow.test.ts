import { describe, expect, it } from 'vitest';
import type { Mark, Plan, Slice } from '@/api/types';
import type { HeadRow } from './headMap';
import { planNow } from './planNow';

const slice = (fields: Partial<Slice>): Slice => ({
  layer: 1,
  part: 'ffn',
  axis: 'columns',
  start: 0,
  stop: 0,
  bare: false,
  bits: 0,
  ...fields,
});
const mark = (name: string, facts: Mark['facts']): Mark => ({ time_s: 1, name, device: 'a', facts });
const nothing = { marks: [], heads: new Map<number, HeadRow>(), lost: new Set<number>() };

/** Device 0 is the primary with [0, 2) of 10 columns; 1 and 2 have the rest, and 3 keeps a copy of 1's. */
function sharesPlan(): Plan {
  const of = (device: number, start: number, stop: number) => ({ device, slice: slice({ start, stop }) });
  const pieces = [of(0, 0, 2), of(1, 2, 6), of(2, 6, 10)];
  const layout = { kind: 'shares', shards: [[0, 0, 2], [1, 2, 6], [2, 6, 10]] } as unknown as Plan['layout']; // oxfmt-ignore
  return {
    version: 0,
    strategy: 'adaptlink',
    work: pieces.map((one) => ({ ...one, phase: 'both' })),
    holdings: [
      ...pieces.map((one) => ({ ...one, home: 'resident' as const })),
      { ...of(3, 2, 6), home: 'backup' },
    ],
    layout,
  };
}

const pieces = (list: readonly { device: number; slice: Slice }[]) =>
  list.map((one) => [one.device, one.slice.start, one.slice.stop]);

describe('planNow', () => {
  it('is the plan itself while nothing has changed', () => {
    const plan = sharesPlan();
    expect(planNow(plan, nothing)).toBe(plan);
    expect(planNow(plan, { ...nothing, lost: new Set([7]) })).toBe(plan);
  });

  it('leaves out what a failed device held and computed', () => {
    const now = planNow(sharesPlan(), { ...nothing, lost: new Set([1]) });
    expect(pieces(now.work)).toEqual([[0, 0, 2], [2, 6, 10]]); // oxfmt-ignore
    expect(pieces(now.holdings)).toEqual([[0, 0, 2], [2, 6, 10], [3, 2, 6]]); // oxfmt-ignore
  });

  it('lets a promoted copy serve, and counts only the copies that are left', () => {
    const promoted = mark('promoted', {
      lost: 1,
      serving: [[3, 2, 6], [2, 6, 10]], // oxfmt-ignore
      copies: [[4, 6, 10]],
    });
    const now = planNow(sharesPlan(), { ...nothing, marks: [promoted], lost: new Set([1]) });
    expect(pieces(now.work)).toEqual([[0, 0, 2], [3, 2, 6], [2, 6, 10]]); // oxfmt-ignore
    expect(now.holdings.filter((one) => one.home === 'backup')).toMatchObject([
      { device: 4, slice: { start: 6, stop: 10, layer: 1 } },
    ]);
    expect(pieces(now.holdings.filter((one) => one.home === 'resident'))).toEqual(pieces(now.work));
  });

  it('divides the positions at the new bounds from the layer on that a mark names', () => {
    const band = (device: number, layer: number, start: number, stop: number) => ({
      device,
      phase: 'prefill' as const,
      slice: slice({ axis: 'positions', layer, start, stop }),
    });
    const plan: Plan = {
      ...sharesPlan(),
      work: [band(0, 0, 0, 4), band(1, 0, 4, 8), band(0, 1, 0, 4), band(1, 1, 4, 8)],
      layout: { kind: 'positions' } as unknown as Plan['layout'],
    };
    const now = planNow(plan, {
      ...nothing,
      marks: [mark('repartitioned', { layer: 1, bounds: [0, 6, 8] })],
    });
    expect(pieces(now.work)).toEqual([[0, 0, 4], [1, 4, 8], [0, 0, 6], [1, 6, 8]]); // oxfmt-ignore
  });

  it('gives heads to the devices that attend them now; pruned ones to nobody', () => {
    const heads = (device: number, start: number, stop: number) => ({
      device,
      phase: 'both' as const,
      slice: slice({ part: 'attention', axis: 'heads', start, stop }),
    });
    const plan: Plan = {
      ...sharesPlan(),
      work: [heads(0, 0, 2), heads(1, 2, 4)],
      layout: { kind: 'heads' } as unknown as Plan['layout'],
    };
    const row = { deviceOf: [0, 2, 2, -1] } as unknown as HeadRow;
    const now = planNow(plan, { ...nothing, heads: new Map([[1, row]]) });
    expect(pieces(now.work)).toEqual([[0, 0, 1], [2, 1, 3]]); // oxfmt-ignore
  });
});
