/** Places the nodes of a reduction tree, given its edges (child, parent) level by level. */
import type { LayoutOf } from '@/api/types';

type Layout = LayoutOf<'tree'>;

export interface TreeNode {
  rank: number;
  depth: number;
  /** Columns from the left; a parent is above the middle of its children. */
  x: number;
  parent: number | null;
}

export function treeOf(
  root: number,
  levels: Layout['tree'],
): { nodes: TreeNode[]; width: number; depth: number } {
  const children = new Map<number, number[]>();
  for (const level of levels) {
    for (const [child, parent] of level) children.set(parent, [...(children.get(parent) ?? []), child]);
  }
  const nodes: TreeNode[] = [];
  let width = 0;
  let deepest = 0;
  const place = (rank: number, parent: number | null, depth: number): number => {
    deepest = Math.max(deepest, depth);
    const below = (children.get(rank) ?? []).map((child) => place(child, rank, depth + 1));
    const x = below.length > 0 ? (below[0]! + below.at(-1)!) / 2 : width++;
    nodes.push({ rank, depth, x, parent });
    return x;
  };
  place(root, null, 0);
  return { nodes, width, depth: deepest };
}
