import { describe, expect, it } from 'vitest';
import type { ComputedSlice, ModelSpec, Plan, Slice } from '@/api/types';
import { model } from '@/run/data/fixtures';
import { allocate, describeSlice, phasesDiffer } from './cells';

const slice = (fields: Partial<Slice>): Slice => ({
  layer: 0,
  part: 'attention',
  axis: 'all',
  start: 0,
  stop: 0,
  bare: false,
  bits: 0,
  ...fields,
});

function plan(work: ComputedSlice[]): Plan {
  const holdings = work.map((one) => ({ device: one.device, slice: one.slice, home: 'resident' as const }));
  return { version: 0, strategy: 'test', holdings, work, layout: { kind: 'single', device: 0 } };
}

describe('allocate', () => {
  it('places heads where they lie in the whole', () => {
    const work: ComputedSlice[] = [
      { device: 0, phase: 'both', slice: slice({ axis: 'heads', start: 0, stop: 3 }) },
      { device: 1, phase: 'both', slice: slice({ axis: 'heads', start: 3, stop: 4 }) },
    ];
    const table = allocate(plan(work), model, 'prefill');
    const column = table.columns.find((one) => one.layer === 0)!;
    expect(table.pieces(1, column, 'attention').filter((piece) => piece.kind === 'work')).toMatchObject([
      { from: 0.75, to: 1 },
    ]);
    expect(table.axes).toEqual([{ axis: 'heads', size: 4 }]);
  });

  it('leaves out the layers of a draft model', () => {
    const work: ComputedSlice[] = [{ device: 0, phase: 'both', slice: slice({ draft: true }) }];
    const { holdings } = plan(work);
    const table = allocate({ ...plan([]), holdings }, model, 'prefill');
    const column = table.columns.find((one) => one.layer === 0)!;
    expect(table.pieces(0, column, 'attention')).toEqual([]);
  });

  it('takes the number of positions from the plan, and only work of the phase asked for', () => {
    const work: ComputedSlice[] = [
      { device: 0, phase: 'prefill', slice: slice({ axis: 'positions', start: 0, stop: 6 }) },
      { device: 1, phase: 'prefill', slice: slice({ axis: 'positions', start: 6, stop: 8 }) },
      { device: 1, phase: 'decode', slice: slice({}) },
    ];
    const column = { key: '0', layer: 0, label: '0', parts: ['attention', 'ffn'] as const };
    const works = (phase: 'prefill' | 'decode', device: number) =>
      allocate(plan(work), model, phase)
        .pieces(device, column, 'attention')
        .filter((piece) => piece.kind === 'work');
    expect(works('prefill', 0)).toMatchObject([{ from: 0, to: 0.75 }]);
    expect(works('decode', 0)).toEqual([]);
    expect(works('decode', 1)).toMatchObject([{ from: 0, to: 1 }]);
    expect(phasesDiffer(plan(work))).toBe(true);
  });

  it('adds the shares of all devices up to one', () => {
    const work: ComputedSlice[] = [0, 1].flatMap((layer) => [
      { device: 0, phase: 'both' as const, slice: slice({ layer, axis: 'heads', start: 0, stop: 1 }) },
      { device: 1, phase: 'both' as const, slice: slice({ layer, axis: 'heads', start: 1, stop: 4 }) },
      {
        device: 0,
        phase: 'both' as const,
        slice: slice({ layer, part: 'ffn', axis: 'columns', start: 0, stop: 8 }),
      },
      {
        device: 1,
        phase: 'both' as const,
        slice: slice({ layer, part: 'ffn', axis: 'columns', start: 8, stop: 32 }),
      },
    ]);
    const table = allocate(plan(work), model, 'decode');
    expect(table.share(0)).toBeCloseTo(0.25);
    expect(table.share(0) + table.share(1)).toBeCloseTo(1);
  });

  it('draws a cut head as parts of the vocabulary', () => {
    const first = { layer: -1, part: 'lm_head' as const, axis: 'columns' as const, start: 0 };
    const half = slice({ ...first, stop: model.vocab_size / 2 });
    const table = allocate(plan([{ device: 0, phase: 'both', slice: half }]), model, 'decode');
    const head = table.columns.find((one) => one.key === 'lm_head');
    expect(head && table.pieces(0, head, 'lm_head').map(({ from, to }) => [from, to])).toEqual([
      [0, 0.5], // held
      [0, 0.5], // computed
    ]);
  });

  it('has columns for embedding and head only where the model has them', () => {
    const keys = (has_head: boolean) =>
      allocate(plan([]), { ...model, has_head }, 'prefill').columns.map((one) => one.key);
    expect(keys(true)).toEqual(['embed', '0', '1', 'lm_head']);
    expect(keys(false)).toEqual(['embed', '0', '1']);
    const seeing = { ...model, vision: { tower: {} } as NonNullable<ModelSpec['vision']> };
    expect(allocate(plan([]), seeing, 'prefill').columns[0]?.key).toBe('vision');
  });
});

describe('describeSlice', () => {
  it('says which units of which part', () => {
    expect(describeSlice(slice({ layer: 2, axis: 'heads', start: 1, stop: 4 }))).toBe(
      'layer 2 attention, 3 heads (1–3)',
    );
    expect(describeSlice(slice({ layer: 2, axis: 'heads', start: 1, stop: 2 }))).toBe(
      'layer 2 attention, 1 head (1)',
    );
    expect(describeSlice(slice({ layer: -1, part: 'lm_head' }))).toBe('head');
    expect(describeSlice(slice({ layer: -1, part: 'vision' }))).toBe('vision tower and projector');
  });
});
