import { isValidElement } from 'react';
import { describe, expect, it } from 'vitest';
import type { LayoutOf, PlanLayout } from '@/api/types';
import { cluster, model } from '@/run/data/fixtures';
import { BandsView } from './BandsView';
import { GenericView } from './GenericView';
import { MethodView } from './MethodView';
import { PipelineView } from './PipelineView';
import { SplitView } from './SplitView';

/** The component that draws a plan with this layout, and the layout it gets. */
function viewOf(layout: PlanLayout): { type: unknown; layout: unknown } | null {
  const plan = { version: 0, strategy: 'x', holdings: [], work: [], layout };
  const shown = MethodView({ plan, model, devices: cluster.devices, data: null, version: 0 });
  return isValidElement<{ layout: unknown }>(shown) ? { type: shown.type, layout: shown.props.layout } : null;
}

const pipeline = (stages: number): LayoutOf<'pipeline'> => ({
  kind: 'pipeline',
  micro_batch: 1,
  head: null,
  kv_rows: null,
  kv_memory_rows: null,
  stages: Array.from({ length: stages }, (_, rank) => ({ device: rank, start: rank, stop: rank + 1 })),
});
const positions: LayoutOf<'positions'> = {
  kind: 'positions',
  devices: [0, 1],
  ratios: [0.5, 0.5],
  owner: null,
  gather: 'direct',
  order: 'auto',
  causal_trim: false,
  last_layer_rows: 'all',
  decode: 'recompute',
  repartition: false,
  shards: [],
  room_bytes: [],
};
const split: LayoutOf<'tensor_parallel'> = {
  kind: 'tensor_parallel',
  kv_rows: null,
  kv_memory_rows: null,
  group: [0, 1],
  heads: [0, 2, 4],
  columns: [0, 16, 32],
  all_reduce: 'ring',
  decode_all_reduce: 'ring',
  vocabulary: null,
  members_embed: false,
};

describe('MethodView', () => {
  it('chooses the view by the kind of the layout, which it passes on', () => {
    for (const [layout, view] of [
      [pipeline(2), PipelineView],
      [positions, BandsView],
      [split, SplitView],
    ] as const)
      expect(viewOf(layout)).toEqual({ type: view, layout });
  });

  it('shows the fields of a layout that has no view of its own', () => {
    const layout = { kind: 'halves', ranks: [0, 1], cut: 3 } as unknown as PlanLayout;
    expect(viewOf(layout)).toEqual({ type: GenericView, layout });
  });

  it('shows nothing for a single device or a single stage', () => {
    expect(viewOf({ kind: 'single', device: 0 })).toBeNull();
    expect(viewOf(pipeline(1))).toBeNull();
  });
});
