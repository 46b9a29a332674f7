/** Recognises trees (a star is one) and rings, and places their nodes so that they look like it. */
import type { ClusterSpec } from '@/api/types';
import type { Point } from './point';

/** Canvas units between a node and its children: cards are 184 wide, labels of links about 110. */
const STEP = 280;
/** Cards are lower than wide, so circles are drawn flatter. */
const FLAT = 0.62;

type Neighbours = ReadonlyMap<string, readonly string[]>;

/** Places for a tree or a ring; null for anything else. */
export function shapeLayout(spec: ClusterSpec): Record<string, Point> | null {
  const neighbours = neighboursOf(spec);
  if (neighbours.size < 3 || !isConnected(neighbours)) return null;
  const pairs = [...neighbours.values()].reduce((sum, others) => sum + others.length, 0) / 2;
  if (pairs === neighbours.size - 1) return radial(neighbours);
  const isRing = pairs === neighbours.size && [...neighbours.values()].every((others) => others.length === 2);
  return isRing ? onCircle(around(neighbours)) : null;
}

/** The different neighbours of every node: parallel links make no further one. */
function neighboursOf(spec: ClusterSpec): Map<string, string[]> {
  const neighbours = new Map<string, string[]>(
    [...spec.devices, ...spec.switches].map((node) => [node.name, []]),
  );
  for (const { a, b } of spec.links) {
    const [ofA, ofB] = [neighbours.get(a), neighbours.get(b)];
    if (!ofA || !ofB || a === b || ofA.includes(b)) continue;
    ofA.push(b);
    ofB.push(a);
  }
  return neighbours;
}

function isConnected(neighbours: Neighbours): boolean {
  const [first] = neighbours.keys();
  const seen = new Set(first === undefined ? [] : [first]);
  for (const name of seen) for (const other of neighbours.get(name) ?? []) seen.add(other);
  return seen.size === neighbours.size;
}

/** A tree around its node with the most links; a subtree gets an angle in proportion to its leaves. */
function radial(neighbours: Neighbours): Record<string, Point> {
  const names = [...neighbours.keys()];
  const degree = (name: string) => neighbours.get(name)?.length ?? 0;
  const root = names.reduce((best, name) => (degree(name) > degree(best) ? name : best));
  const children = new Map<string, string[]>();
  const order = [root];
  const parent = new Map<string, string>();
  for (const name of order) {
    const own = (neighbours.get(name) ?? []).filter((other) => other !== parent.get(name));
    children.set(name, own);
    for (const child of own) parent.set(child, name);
    order.push(...own);
  }
  const leaves = new Map<string, number>();
  for (const name of order.toReversed()) {
    const below = (children.get(name) ?? []).reduce((sum, child) => sum + (leaves.get(child) ?? 0), 0);
    leaves.set(name, below || 1);
  }
  const widest = Math.max(STEP, ((leaves.get(root) ?? 1) * STEP) / (2 * Math.PI) / FLAT);
  const places: Record<string, Point> = { [root]: { x: 0, y: 0 } };
  const place = (name: string, depth: number, begin: number, end: number) => {
    let from = begin;
    for (const child of children.get(name) ?? []) {
      const to = from + ((end - begin) * (leaves.get(child) ?? 1)) / (leaves.get(name) ?? 1);
      places[child] = polar(widest + (depth - 1) * STEP, (from + to) / 2);
      place(child, depth + 1, from, to);
      from = to;
    }
  };
  place(root, 1, -Math.PI, Math.PI);
  return places;
}

/** The nodes of a ring in the order of their links. */
function around(neighbours: Neighbours): string[] {
  const order: string[] = [];
  let [name]: (string | undefined)[] = [...neighbours.keys()];
  while (name !== undefined) {
    order.push(name);
    name = neighbours.get(name)?.find((other) => !order.includes(other));
  }
  return order;
}

function onCircle(names: readonly string[]): Record<string, Point> {
  const radius = Math.max(STEP, (names.length * STEP) / (2 * Math.PI) / FLAT);
  return Object.fromEntries(
    names.map((name, index) => [name, polar(radius, (2 * Math.PI * index) / names.length - Math.PI / 2)]),
  );
}

function polar(radius: number, angle: number): Point {
  return { x: Math.round(radius * Math.cos(angle)), y: Math.round(radius * FLAT * Math.sin(angle)) };
}
