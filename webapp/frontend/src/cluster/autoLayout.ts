import { Graph, layout as dagreLayout } from '@dagrejs/dagre';
import type { ClusterSpec, CanvasLayout } from '@/api/types';
import { placed } from './places';
import type { Point } from './point';
import { shapeLayout } from './shapes';

export type { Point };

/** Positions are centres of nodes. A device card has about this size. */
export const DEVICE_SIZE = { width: 184, height: 76 };
export const SWITCH_SIZE = { width: 112, height: 40 };

/** Between the centres of nodes that stand in rows. */
const ROW = { across: DEVICE_SIZE.width + 80, down: DEVICE_SIZE.height + 60 };

/**
 * Computed positions for every node. A tree, such as a star, and a ring look like it; of anything else, levels below
 * the node with the most links, with few crossings. Nodes without links stand in rows below.
 */
export function autoLayout(spec: ClusterSpec): Record<string, Point> {
  const linked = new Set(spec.links.flatMap(({ a, b }) => [a, b]));
  const lone = [...spec.devices, ...spec.switches]
    .map(({ name }) => name)
    .filter((name) => !linked.has(name));
  if (lone.length === 0) return shapeLayout(spec) ?? levels(spec);
  const joined = {
    ...spec,
    devices: spec.devices.filter(({ name }) => linked.has(name)),
    switches: spec.switches.filter(({ name }) => linked.has(name)),
  };
  const above = linked.size > 0 ? (shapeLayout(joined) ?? levels(joined)) : {};
  return { ...above, ...inRows(lone, Object.values(above)) };
}

/** Nodes in rows that are about as many as their columns, below other places. */
function inRows(names: readonly string[], above: readonly Point[]): Record<string, Point> {
  const columns = Math.ceil(Math.sqrt(names.length));
  const left = above.length > 0 ? Math.min(...above.map(({ x }) => x)) : 0;
  const top = above.length > 0 ? Math.max(...above.map(({ y }) => y)) + ROW.down : 0;
  return Object.fromEntries(
    names.map((name, at) => [
      name,
      { x: left + (at % columns) * ROW.across, y: top + Math.floor(at / columns) * ROW.down },
    ]),
  );
}

/** Levels below the node with the most links. */
function levels(spec: ClusterSpec): Record<string, Point> {
  const graph = new Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 80, ranksep: 112, edgesep: 40 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const device of spec.devices) graph.setNode(device.name, { ...DEVICE_SIZE });
  for (const node of spec.switches) graph.setNode(node.name, { ...SWITCH_SIZE });
  for (const [a, b] of awayFromCentre(spec)) graph.setEdge(a, b);
  dagreLayout(graph);
  const places: Record<string, Point> = {};
  for (const name of graph.nodes()) {
    const { x, y } = graph.node(name) as Point;
    places[name] = { x: Math.round(x), y: Math.round(y) };
  }
  return places;
}

/** The saved positions; nodes that have none get computed ones. */
export function positionsOf(spec: ClusterSpec, layout: CanvasLayout | undefined): Record<string, Point> {
  return placed(spec, layout, autoLayout);
}

/** Links with known ends, each directed away from the best connected node of its component. */
function awayFromCentre(spec: ClusterSpec): [string, string][] {
  const neighbours = new Map<string, string[]>(
    [...spec.devices, ...spec.switches].map((node) => [node.name, []]),
  );
  for (const { a, b } of spec.links) {
    neighbours.get(a)?.push(b);
    neighbours.get(b)?.push(a);
  }
  const byDegree = [...neighbours.keys()].toSorted(
    (a, b) => (neighbours.get(b)?.length ?? 0) - (neighbours.get(a)?.length ?? 0),
  );
  const order = new Map<string, number>();
  for (const root of byDegree) {
    const queue = order.has(root) ? [] : [root];
    for (const name of queue) {
      if (order.has(name)) continue;
      order.set(name, order.size);
      queue.push(...(neighbours.get(name) ?? []));
    }
  }
  return spec.links
    .filter(({ a, b }) => order.has(a) && order.has(b))
    .map(({ a, b }) => ((order.get(a) ?? 0) <= (order.get(b) ?? 0) ? [a, b] : [b, a]));
}
