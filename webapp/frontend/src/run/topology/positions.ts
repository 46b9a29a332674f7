/** Positions of nodes for a cluster without a drawing. */
import { graphlib, layout } from '@dagrejs/dagre';
import type { ClusterSpec, CanvasLayout } from '@/api/types';

export type Positions = CanvasLayout['positions'];

const NODE = { width: 176, height: 92 };

/** The drawn positions if every node has one, otherwise a computed arrangement. */
export function positionsOf(cluster: ClusterSpec, drawn?: Positions): Positions {
  const names = [...cluster.devices, ...cluster.switches].map((node) => node.name);
  if (drawn && names.every((name) => drawn[name])) return drawn;
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 56, ranksep: 84 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(name, { ...NODE });
  for (const link of cluster.links) graph.setEdge(link.a, link.b);
  layout(graph);
  return Object.fromEntries(
    names.map((name) => {
      const { x, y } = graph.node(name);
      return [name, { x: x - NODE.width / 2, y: y - NODE.height / 2 }];
    }),
  );
}

interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Where the line between the middles of two boxes leaves the first. */
export function edgePoint(from: Box, to: Box): { x: number; y: number } {
  const x = from.x + from.width / 2;
  const y = from.y + from.height / 2;
  const dx = to.x + to.width / 2 - x;
  const dy = to.y + to.height / 2 - y;
  if (dx === 0 && dy === 0) return { x, y };
  const scale = Math.min(
    dx === 0 ? Infinity : from.width / 2 / Math.abs(dx),
    dy === 0 ? Infinity : from.height / 2 / Math.abs(dy),
  );
  return { x: x + dx * scale, y: y + dy * scale };
}
