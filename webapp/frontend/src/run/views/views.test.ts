import { describe, expect, it } from 'vitest';
import type { Holding, Mark, Plan } from '@/api/types';
import { RunData } from '@/run/data/runData';
import { cluster, model, span } from '@/run/data/fixtures';
import { HeadMap, PRUNED } from '@/run/data/headMap';
import { sharesOf, viewOf } from './kinds';
import { passesOf } from './passes';
import { servingOf } from './shares';
import { blocksOf } from './slots';
import { treeOf } from './tree';

const plan = (layout: Record<string, unknown>, holdings: Holding[] = []): Plan => ({
  version: 0,
  strategy: 'x',
  holdings,
  work: [],
  layout,
});
const mark = (name: string, facts: Record<string, unknown>, time_s = 1): Mark => ({
  time_s,
  name,
  device: 'a',
  facts,
});

describe('viewOf', () => {
  it('is the one of the layout, and none for a single device or stage', () => {
    expect(viewOf(plan({ kind: 'heads' }))).toBe('heads');
    expect(viewOf(plan({ kind: 'pipeline', stages: [{}, {}] }))).toBe('pipeline');
    expect(viewOf(plan({ kind: 'planned_pipeline', stages: [{}] }))).toBeNull();
    expect(viewOf(plan({ kind: 'positions' }))).toBe('bands');
    expect(viewOf(plan({ kind: 'tensor_parallel' }))).toBe('split');
    expect(viewOf(plan({ kind: 'single', device: 0 }))).toBeNull();
  });
});

describe('sharesOf', () => {
  it('gives every rank its stretch, and nothing to those that have none', () => {
    expect(sharesOf([2, 0, 1], [0, 3, 3, 8])).toEqual([
      [2, 0, 3],
      [1, 3, 8],
    ]);
  });
});

describe('HeadMap', () => {
  it('shows who attends which head, what was pruned, and what moved after a change', () => {
    const heads = new HeadMap();
    heads.apply(
      mark('heads', {
        layer: 1,
        owner: 0,
        device_of: [0, 1, PRUNED, 1],
        scores: [0.5, 0.4, null, 0.1],
        t_collab_s: 0.01,
        t_max_s: 0.02,
      }),
    );
    heads.apply(
      mark(
        'reallocated',
        {
          layer: 1,
          owner: 0,
          reason: 'b lost',
          device_of_before: [0, 1, PRUNED, 1],
          device_of: [0, 0, PRUNED, 0],
        },
        2,
      ),
    );
    heads.apply(
      mark('heads', {
        layer: 0,
        owner: 0,
        device_of: [0, 0, 0, 0],
        scores: [1, 1, 1, 1],
        t_collab_s: null,
        t_max_s: null,
      }),
    );
    const [first, second] = heads.list();
    expect(first).toMatchObject({ layer: 0, collab_s: null, deadline_s: null });
    expect(second).toMatchObject({
      deviceOf: [0, 0, PRUNED, 0],
      reason: 'b lost',
      time_s: 2,
      deadline_s: 0.02,
    });
    expect([...second!.moved]).toEqual([1, 3]);
  });
});

describe('blocksOf', () => {
  const holding = (layer: number, part: 'attention' | 'ffn', home: Holding['home']): Holding => ({
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
    expect(blocksOf(plan({}, holdings), 0, null)).toEqual([
      { layer: 0, part: 'both', state: 'resident', newest: false },
      { layer: 1, part: 'attention', state: 'resident', newest: false },
      { layer: 1, part: 'ffn', state: 'disk', newest: false },
    ]);
    expect(blocksOf(plan({}, holdings), 1, null)).toEqual([]);
  });

  it('follows loads and evictions', () => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ kind: 'evict', layer: 1, name: 'attention', start_s: 1, end_s: 1 }),
      span({ kind: 'load', layer: 1, name: 'ffn', start_s: 1, end_s: 2, bytes: 8 }),
    ]);
    const ring = data.device('a')!.lanes.compute;
    expect(blocksOf(plan({}, holdings), 0, ring).slice(1)).toEqual([
      { layer: 1, part: 'attention', state: 'disk', newest: false },
      { layer: 1, part: 'ffn', state: 'loaded', newest: true },
    ]);
    expect(data.device('a')).toMatchObject({ loadedBytes: 8, loading_s: 1 });
  });

  it('knows that who shares a slot with a block on disk comes and goes too', () => {
    const shared = plan({ segments: [[[0, 0, 2]]], cycles: { 0: [[0, 1]] } }, holdings);
    expect(blocksOf(shared, 0, null).map((block) => block.state)).toEqual(['loaded', 'loaded', 'disk']);
  });
});

describe('servingOf', () => {
  it('puts promoted backups in the place of a lost secondary', () => {
    const promoted = [
      mark('promoted', {
        lost: 1,
        backups: [
          [2, 4, 6],
          [3, 6, 8],
        ],
        epoch: 1,
      }),
    ];
    expect(
      servingOf(
        [
          [0, 0, 4],
          [1, 4, 8],
        ],
        promoted,
      ).map((piece) => piece.rank),
    ).toEqual([0, 2, 3]);
  });
});

describe('treeOf', () => {
  it('puts a parent over the middle of its children', () => {
    const { nodes, width, depth } = treeOf(0, [
      [
        [1, 0],
        [3, 2],
      ],
      [[2, 0]],
    ]);
    expect([width, depth]).toEqual([2, 2]);
    expect(nodes.find((node) => node.rank === 0)).toEqual({ rank: 0, depth: 0, x: 0.5, parent: null });
    expect(nodes.find((node) => node.rank === 3)).toMatchObject({ depth: 2, x: 1, parent: 2 });
  });
});

describe('passesOf', () => {
  const data = new RunData(cluster, model);
  data.apply([
    span({ start_s: 0, end_s: 1, request: 0 }),
    span({ start_s: 1, end_s: 2, request: 0, layer: 1 }),
    span({ kind: 'load', start_s: 2, end_s: 3 }),
    span({ start_s: 3, end_s: 4, request: 1 }),
    span({ start_s: 4.5, end_s: 5, request: 1 }),
  ]);
  const ring = data.device('a')!.lanes.compute;

  it('joins the operations of one step of one request', () => {
    expect(passesOf(ring, 0, 5, 1)).toEqual({
      passes: [
        { request: 0, token: 0, start_s: 0, end_s: 2 },
        { request: 1, token: 0, start_s: 3, end_s: 5 },
      ],
      busy_s: 3.5,
    });
  });

  it('leaves the bubble in which a stage waits for the others to finish the same step', () => {
    expect(passesOf(ring, 0, 5, 0.1).passes.map((pass) => [pass.start_s, pass.end_s])).toEqual([
      [0, 2],
      [3, 4],
      [4.5, 5],
    ]);
    expect(passesOf(ring, 3.5, 4.75, 0.1).busy_s).toBeCloseTo(0.75);
  });
});
