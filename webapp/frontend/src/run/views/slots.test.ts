import { describe, expect, it } from 'vitest';
import type { HeldSlice, LayoutOf } from '@/api/types';
import { cluster, model, span } from '@/run/data/fixtures';
import { RunData } from '@/run/data/runData';
import { blocksOf } from './slots';

const segments: LayoutOf<'segments'> = {
  kind: 'segments',
  mode: 'exact',
  segments: [[[0, 0, 2]]],
  slots: { 0: 1 },
  streamed: {},
  online: {},
  transfers: [],
  fluctuation_rows: 0,
  planned_step_s: 1,
  left_out: [],
  chunk_rows: 0,
  micro_batch: 1,
};

describe('blocksOf', () => {
  const holding = (layer: number, part: 'attention' | 'ffn', home: HeldSlice['home']): HeldSlice => ({
    device: 0,
    home,
    slice: { layer, part, axis: 'all', start: 0, stop: 0, bare: false, bits: 0 },
  });
  const holdings = [
    holding(0, 'attention', 'resident'),
    holding(0, 'ffn', 'resident'),
    holding(1, 'attention', 'resident'),
    holding(1, 'ffn', 'offloaded'),
  ];

  it('begins as the plan says, one block for both parts in the same state', () => {
    expect(blocksOf(segments, holdings, 0, null)).toEqual([
      { layer: 0, part: 'both', state: 'resident', newest: false },
      { layer: 1, part: 'attention', state: 'resident', newest: false },
      { layer: 1, part: 'ffn', state: 'disk', newest: false },
    ]);
    expect(blocksOf(segments, holdings, 1, null)).toEqual([]);
  });

  it('follows loads and evictions', () => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ kind: 'evict', layer: 1, name: 'attention', start_s: 1, end_s: 1 }),
      span({ kind: 'load', layer: 1, name: 'ffn', start_s: 1, end_s: 2, bytes: 8 }),
    ]);
    const ring = data.device('a')!.lanes.compute;
    expect(blocksOf(segments, holdings, 0, ring).slice(1)).toEqual([
      { layer: 1, part: 'attention', state: 'disk', newest: false },
      { layer: 1, part: 'ffn', state: 'loaded', newest: true },
    ]);
    expect(data.device('a')).toMatchObject({ loadedBytes: 8, loading_s: 1 });
  });

  it('also streams a block in memory that shares a slot with one on disk', () => {
    const shared: LayoutOf<'pipeline_offload'> = {
      kind: 'pipeline_offload',
      micro_batch: 1,
      kv_rows: null,
      kv_memory_rows: null,
      stages: [
        { device: 1, start: 0, stop: 4 },
        { device: 0, start: 4, stop: 7 },
      ],
      segments: [
        [
          [1, 0, 4],
          [0, 4, 7],
        ],
      ],
      slots: { 0: 1 },
      // Positions 1 and 2 of the stage, which are layers 5 and 6, share a slot; layer 4 stays in memory.
      cycles: { 0: [[1, 2]] },
      schedule: 'continuous',
    };
    const own = [4, 5, 6].flatMap((layer) => [
      holding(layer, 'attention', layer === 6 ? 'offloaded' : 'resident'),
      holding(layer, 'ffn', layer === 6 ? 'offloaded' : 'resident'),
    ]);
    expect(blocksOf(shared, own, 0, null).map((block) => [block.layer, block.state])).toEqual([
      [4, 'resident'],
      [5, 'loaded'],
      [6, 'disk'],
    ]);
  });
});
