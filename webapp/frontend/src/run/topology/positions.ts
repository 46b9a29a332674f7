/** Positions of the middles of nodes for a cluster without a drawing, and where the labels of its links are. */
import { graphlib, layout } from '@dagrejs/dagre';
import type { ClusterSpec, CanvasLayout } from '@/api/types';
import type { Box } from '@/cluster/border';
import { type Route, type Spot, spotsAmong } from '@/cluster/labels';
import { linkName } from '@/format/links';

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
      return [name, { x, y }];
    }),
  );
}

const CARD = { width: 158, height: 62 };
/** A switch with a short name. */
const SWITCH = { width: 84, height: 34 };
/** The rate of a link and how much of it is used. */
const LABEL = { width: 142, height: 24 };
/** Between the cards of two devices, for the rate of a link. */
const GAP = { x: 20, y: 44 };

/**
 * The positions pushed together until all cards fit into `room`, if they do so without touching; else, for devices
 * around one switch, rows above and below it; else the positions as they are.
 */
export function fitted(
  cluster: ClusterSpec,
  positions: Positions,
  room: { width: number; height: number },
): Positions {
  const all = Object.values(positions);
  const [left, top] = [Math.min(...all.map(({ x }) => x)), Math.min(...all.map(({ y }) => y))];
  const width = Math.max(...all.map(({ x }) => x)) - left;
  const height = Math.max(...all.map(({ y }) => y)) - top;
  if (width + CARD.width <= room.width && height + CARD.height <= room.height) return positions;
  const sx = Math.min(1, Math.max(room.width - CARD.width, 1) / Math.max(width, 1));
  const sy = Math.min(1, Math.max(room.height - CARD.height, 1) / Math.max(height, 1));
  const together = Object.fromEntries(
    Object.entries(positions).map(([name, { x, y }]) => [name, { x: (x - left) * sx, y: (y - top) * sy }]),
  );
  if (!touching(Object.values(together))) return together;
  return aroundSwitch(cluster, room) ?? positions;
}

/** Where the lines and labels of links are, by name. */
export function spotsIn(cluster: ClusterSpec, positions: Positions): Map<string, Spot> {
  const boxed = (nodes: readonly { name: string }[], size: typeof CARD) =>
    nodes.map(({ name }): [string, Box] => [name, { center: positions[name] ?? { x: 0, y: 0 }, ...size }]);
  const routes = cluster.links.map((link): Route => ({ name: linkName(link), ends: [link.a, link.b] }));
  return spotsAmong(
    routes,
    new Map([...boxed(cluster.devices, CARD), ...boxed(cluster.switches, SWITCH)]),
    LABEL,
  );
}

function touching(list: readonly { x: number; y: number }[]): boolean {
  return list.some((one, at) =>
    list
      .slice(at + 1)
      .some(
        (other) =>
          Math.abs(one.x - other.x) < CARD.width + GAP.x / 2 &&
          Math.abs(one.y - other.y) < CARD.height + GAP.y,
      ),
  );
}

/** Rows of devices above and below their only switch; null for another shape. */
function aroundSwitch(cluster: ClusterSpec, room: { width: number; height: number }): Positions | null {
  const [hub, ...others] = cluster.switches;
  const isStar =
    hub && others.length === 0 && cluster.links.every(({ a, b }) => (a === hub.name) !== (b === hub.name));
  if (!isStar) return null;
  const { devices } = cluster;
  const columnWidth = CARD.width + GAP.x;
  const perRow = Math.max(
    1,
    Math.min(Math.ceil(devices.length / 2), Math.floor((room.width + GAP.x) / columnWidth)),
  );
  const rows = Math.ceil(devices.length / perRow);
  const above = Math.ceil(rows / 2);
  // The row of the switch is one more; the rows move together where the room is low.
  const lowest = CARD.height + GAP.y / 2;
  const rowHeight = Math.max(lowest, Math.min(CARD.height + GAP.y, (room.height - CARD.height) / rows));
  const middle = (perRow * columnWidth - GAP.x) / 2;
  const placed = devices.map(({ name }, rank) => {
    const row = Math.floor(rank / perRow);
    const inRow = Math.min(perRow, devices.length - row * perRow);
    const x = middle - ((inRow - 1) * columnWidth) / 2 + (rank % perRow) * columnWidth;
    return [name, { x, y: (row + (row >= above ? 1 : 0)) * rowHeight }] as const;
  });
  return Object.fromEntries([...placed, [hub.name, { x: middle, y: above * rowHeight }]]);
}
