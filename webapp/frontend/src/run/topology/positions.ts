/** How a cluster is arranged on the live page: as it was drawn, if that fits; else so that all of it can be seen. */
import { graphlib, layout } from '@dagrejs/dagre';
import type { ClusterSpec, CanvasLayout } from '@/api/types';
import type { Box } from '@/cluster/border';
import { lineOf, type Route, type Spot, spotsAmong } from '@/cluster/labels';
import type { Point } from '@/cluster/point';
import { crosses } from '@/cluster/polyline';
import { linkName } from '@/format/links';

/** Middles of nodes, and bends of links. */
export type Drawn = Pick<CanvasLayout, 'positions' | 'bends'>;

interface Size {
  width: number;
  height: number;
}

interface Card extends Size {
  gap: number;
}

/** Whole cards, cards of one line, or tiles with a number, for very many devices. */
export type Cards = 'full' | 'compact' | 'tile';

export interface Arrangement extends Drawn {
  cards: Cards;
  /** Where the lines and labels of links are, by name. */
  spots: Map<string, Spot>;
}

const NODE = { width: 176, height: 92 };

/** The drawing if it has every node, otherwise a computed one. */
export function drawingOf(cluster: ClusterSpec, drawn?: Drawn): Drawn {
  const names = [...cluster.devices, ...cluster.switches].map((node) => node.name);
  if (drawn && names.every((name) => drawn.positions[name]))
    return among(drawn, names, cluster.links.map(linkName));
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: 'TB', nodesep: 56, ranksep: 84 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const name of names) graph.setNode(name, { ...NODE });
  for (const link of cluster.links) graph.setEdge(link.a, link.b);
  layout(graph);
  const positions = Object.fromEntries(
    names.map((name) => {
      const { x, y } = graph.node(name);
      return [name, { x, y }];
    }),
  );
  return { positions, bends: {} };
}

/** What a drawing has of these nodes and links: it may have others too, which were added or switched off. */
function among({ positions, bends }: Drawn, nodes: readonly string[], links: readonly string[]): Drawn {
  return {
    positions: Object.fromEntries(nodes.map((name) => [name, positions[name]!])),
    bends: Object.fromEntries(links.flatMap((name) => (bends[name] ? [[name, bends[name]]] : []))),
  };
}

/** Sizes of cards as the style sheet has them, and the least distance between two. */
const CARD = {
  full: { width: 158, height: 62, gap: 12 },
  compact: { width: 148, height: 32, gap: 12 },
  tile: { width: 40, height: 20, gap: 4 },
} satisfies Record<Cards, Card>;
/** A switch with a short name. */
const SWITCH = {
  full: { width: 84, height: 34 },
  compact: { width: 84, height: 34 },
  tile: { width: 84, height: 20 },
};
const LABEL_HEIGHT = 24;
/** The rate of a link in one direction; in both, where they differ; and how much of it is used. */
const LABEL_WIDTH = { one: 92, both: 164, use: 44 };
/** Prices of what is worse than the cluster as it was drawn, with all labels. */
const PRICE = { dot: 1.5, covered: 1, compact: 1, turned: 2, rows: 2 };

/**
 * The best arrangement that fits into `room`: of the drawing, pushed together as far as necessary, the drawing with its
 * rows as columns, and, for devices around one switch, rows above and below it, each with full and with compact cards,
 * and with tiles where neither fits. Where nothing does, what is nearest; it can be dragged.
 */
export function arranged(cluster: ClusterSpec, drawn: Drawn, room: Size): Arrangement {
  let best: Arrangement | null = null;
  let least = Infinity;
  for (const cards of ['full', 'compact', 'tile'] as const) {
    if (cards === 'tile' && best) break;
    const card = CARD[cards];
    const choices: [Drawn | null, number][] = [
      [pushed(drawn, room, card), 0],
      [pushed(turned(drawn), room, card), PRICE.turned],
      [aroundSwitch(cluster, room, card), PRICE.rows],
    ];
    for (const [one, price] of choices) {
      if (!one || !isClear(cluster, one, room, cards)) continue;
      const found = arrangement(cluster, one, cards);
      const sum = price + (cards === 'full' ? 0 : PRICE.compact) + faults(cluster, found);
      if (sum < least) [best, least] = [found, sum];
    }
  }
  return best ?? arrangement(cluster, aroundSwitch(cluster, room, CARD.compact) ?? drawn, 'compact');
}

export function arrangement(cluster: ClusterSpec, drawn: Drawn, cards: Cards): Arrangement {
  // Between tiles there is no room for labels.
  if (cards === 'tile') return { ...drawn, cards, spots: new Map() };
  const boxes = boxesOf(cluster, drawn, cards);
  return { ...drawn, cards, spots: spotsAmong(routesOf(cluster, drawn, cards), boxes, true) };
}

function routesOf(cluster: ClusterSpec, { bends }: Drawn, cards: Cards): Route[] {
  return cluster.links.map((link) => {
    const name = linkName(link);
    const isSame = link.reverse_bit_per_s === null || link.reverse_bit_per_s === link.bit_per_s;
    const width = (isSame ? LABEL_WIDTH.one : LABEL_WIDTH.both) + (cards === 'full' ? LABEL_WIDTH.use : 0);
    return { name, ends: [link.a, link.b], bends: bends[name], size: { width, height: LABEL_HEIGHT } };
  });
}

function boxesOf(cluster: ClusterSpec, { positions }: Drawn, cards: Cards): Map<string, Box> {
  const boxed = (nodes: readonly { name: string }[], size: Size) =>
    nodes.map(({ name }): [string, Box] => [name, { center: positions[name] ?? { x: 0, y: 0 }, ...size }]);
  return new Map([...boxed(cluster.devices, CARD[cards]), ...boxed(cluster.switches, SWITCH[cards])]);
}

/** The price of labels without room, and of links that pass below cards. */
function faults(cluster: ClusterSpec, { spots, cards, ...drawn }: Arrangement): number {
  const boxes = boxesOf(cluster, drawn, cards);
  let sum = 0;
  for (const { name, ends, bends = [] } of routesOf(cluster, drawn, cards)) {
    const [a, b, spot] = [boxes.get(ends[0]), boxes.get(ends[1]), spots.get(name)];
    if (!a || !b || !spot) continue;
    const line = lineOf(a, b, bends, spot.lane);
    for (const [node, box] of boxes) if (!ends.includes(node) && crosses(line, box)) sum += PRICE.covered;
    if (spot.small) sum += PRICE.dot;
  }
  return sum;
}

/** Moved together, if it is too large, so that the middles of cards stay half a card within the room. */
function pushed({ positions, bends }: Drawn, room: Size, card: Size): Drawn {
  const all = [...Object.values(positions), ...Object.values(bends).flat()];
  const [left, right] = [Math.min(...all.map(({ x }) => x)), Math.max(...all.map(({ x }) => x))];
  const [top, bottom] = [Math.min(...all.map(({ y }) => y)), Math.max(...all.map(({ y }) => y))];
  const sx = Math.min(1, Math.max(room.width - card.width, 1) / Math.max(right - left, 1));
  const sy = Math.min(1, Math.max(room.height - card.height, 1) / Math.max(bottom - top, 1));
  if (sx === 1 && sy === 1) return { positions, bends };
  return moved({ positions, bends }, ({ x, y }) => ({ x: (x - left) * sx, y: (y - top) * sy }));
}

/** Rows become columns: wide panels have more room for these. */
function turned(drawn: Drawn): Drawn {
  return moved(drawn, ({ x, y }) => ({ x: y, y: x }));
}

function moved({ positions, bends }: Drawn, to: (point: Point) => Point): Drawn {
  return {
    positions: Object.fromEntries(Object.entries(positions).map(([name, point]) => [name, to(point)])),
    bends: Object.fromEntries(Object.entries(bends).map(([name, points]) => [name, points.map(to)])),
  };
}

/** Whether everything is within the room, and no two cards touch. */
function isClear(cluster: ClusterSpec, drawn: Drawn, room: Size, cards: Cards): boolean {
  const boxes = [...boxesOf(cluster, drawn, cards).values()];
  const { gap } = CARD[cards];
  const span = (at: (box: Box) => number, half: (box: Box) => number) =>
    Math.max(...boxes.map((box) => at(box) + half(box))) -
    Math.min(...boxes.map((box) => at(box) - half(box)));
  const width = span(
    (box) => box.center.x,
    (box) => box.width / 2,
  );
  const height = span(
    (box) => box.center.y,
    (box) => box.height / 2,
  );
  if (width > room.width + 1 || height > room.height + 1) return false;
  return boxes.every((one, at) =>
    boxes
      .slice(at + 1)
      .every(
        (other) =>
          Math.abs(one.center.x - other.center.x) >= (one.width + other.width) / 2 + gap ||
          Math.abs(one.center.y - other.center.y) >= (one.height + other.height) / 2 + gap,
      ),
  );
}

/** Rows of devices above and below their only switch; null for another shape. */
function aroundSwitch(cluster: ClusterSpec, room: Size, card: Card): Drawn | null {
  const [hub, ...others] = cluster.switches;
  const isStar =
    hub && others.length === 0 && cluster.links.every(({ a, b }) => (a === hub.name) !== (b === hub.name));
  if (!isStar) return null;
  const { devices } = cluster;
  const columnWidth = card.width + card.gap;
  const perRow = Math.max(
    1,
    Math.min(Math.ceil(devices.length / 2), Math.floor((room.width + card.gap) / columnWidth)),
  );
  const rows = Math.ceil(devices.length / perRow);
  const above = Math.ceil(rows / 2);
  // The row of the switch is one more; the rows move together where the room is low.
  const lowest = card.height + card.gap;
  const highest = card.height + LABEL_HEIGHT + card.gap;
  const rowHeight = Math.max(lowest, Math.min(highest, (room.height - card.height) / rows));
  const middle = (perRow * columnWidth - card.gap) / 2;
  const placed = devices.map(({ name }, rank) => {
    const row = Math.floor(rank / perRow);
    const inRow = Math.min(perRow, devices.length - row * perRow);
    const x = middle - ((inRow - 1) * columnWidth) / 2 + (rank % perRow) * columnWidth;
    return [name, { x, y: (row + (row >= above ? 1 : 0)) * rowHeight }] as const;
  });
  const positions = Object.fromEntries([...placed, [hub.name, { x: middle, y: above * rowHeight }]]);
  return { positions, bends: {} };
}
