import { describe, expect, it } from 'vitest';
import { treeOf } from './tree';

describe('treeOf', () => {
  it('puts a parent above the middle of its children', () => {
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
