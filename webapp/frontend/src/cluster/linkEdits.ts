/** Edits of links whose directions may differ, of their bends, and which of parallel links carry what. */
import type { CanvasLayout, LinkSpec } from '@/api/types';
import { linkName } from '@/format/links';
import { type Point, positionsOf } from './autoLayout';
import { between, type Drawing, isLinkOff, withSpec } from './drawing';

/** The fields that a direction has of its own, and those of the way back. */
export const BACK = {
  bit_per_s: 'reverse_bit_per_s',
  delay_s: 'reverse_delay_s',
  loss_frac: 'reverse_loss_frac',
} as const;
export type Directed = keyof typeof BACK;
export type Direction = 'both' | 'forward' | 'backward';

const DIRECTED = Object.keys(BACK) as Directed[];
const MAX_BENDS = 20;

/** Whether a link has a field that differs, or may differ, by direction. */
export const isAsymmetric = (link: LinkSpec) => DIRECTED.some((field) => link[BACK[field]] !== null);

/** The value of a direction: an empty one back is that of the way there. */
export const valueOf = (link: LinkSpec, field: Directed, direction: Direction): number =>
  direction === 'backward' ? (link[BACK[field]] ?? link[field]) : link[field];

/** Sets a field of these links in one or both directions; the other direction keeps its value. */
export function setDirected(
  drawing: Drawing,
  names: readonly string[],
  field: Directed,
  direction: Direction,
  value: number,
): Drawing {
  const change = (link: LinkSpec): LinkSpec => {
    const back = BACK[field];
    if (direction === 'both') return { ...link, [field]: value, [back]: null };
    if (direction === 'forward') return { ...link, [field]: value, [back]: valueOf(link, field, 'backward') };
    return { ...link, [back]: value };
  };
  return eachLink(drawing, names, change);
}

/** Gives every direction fields of its own with the present values, or makes the way back like the way there. */
export function setAsymmetric(drawing: Drawing, names: readonly string[], on: boolean): Drawing {
  const change = (link: LinkSpec): LinkSpec => {
    const back = DIRECTED.map((field) => [BACK[field], on ? valueOf(link, field, 'backward') : null]);
    return { ...link, ...Object.fromEntries(back) };
  };
  return eachLink(drawing, names, change);
}

/**
 * Whether routes use this link from a to b, and back: the fastest of parallel links carries a direction, of equally
 * fast ones the first. What is switched off carries nothing.
 */
export function carries({ spec, layout }: Drawing, link: LinkSpec): { forward: boolean; backward: boolean } {
  const on = between(spec.links, link.a, link.b).filter((each) => !isLinkOff(each, layout));
  const fastest = (from: string) => {
    const rate = (each: LinkSpec) => valueOf(each, 'bit_per_s', each.a === from ? 'forward' : 'backward');
    const best = Math.max(...on.map(rate));
    return on.find((each) => rate(each) === best);
  };
  return { forward: fastest(link.a) === link, backward: fastest(link.b) === link };
}

/** Adds a bend where the line from `from` to `to` through the bends passes nearest to `at`. */
export function addBend(drawing: Drawing, name: string, at: Point): Drawing {
  const link = drawing.spec.links.find((each) => linkName(each) === name);
  const points = drawing.layout.bends[name] ?? [];
  const places = positionsOf(drawing.spec, drawing.layout);
  const [from, to] = [link && places[link.a], link && places[link.b]];
  if (!from || !to || points.length >= MAX_BENDS) return drawing;
  const line = [from, ...points, to];
  const distances = line.slice(1).map((end, index) => distance(at, line[index] ?? end, end));
  const nearest = distances.indexOf(Math.min(...distances));
  return withBends(drawing, name, points.toSpliced(nearest, 0, rounded(at)));
}

export function moveBend(drawing: Drawing, name: string, index: number, at: Point): Drawing {
  return withBends(drawing, name, (drawing.layout.bends[name] ?? []).with(index, rounded(at)));
}

export function removeBend(drawing: Drawing, name: string, index: number): Drawing {
  return withBends(drawing, name, (drawing.layout.bends[name] ?? []).toSpliced(index, 1));
}

/** Removes all bends of these links. */
export function straighten(drawing: Drawing, names: readonly string[]): Drawing {
  if (!names.some((name) => drawing.layout.bends[name])) return drawing;
  return names.reduce((next, name) => withBends(next, name, []), drawing);
}

function withBends(drawing: Drawing, name: string, points: readonly Point[]): Drawing {
  const { [name]: _, ...rest } = drawing.layout.bends;
  const bends: CanvasLayout['bends'] = points.length ? { ...rest, [name]: [...points] } : rest;
  return { ...drawing, layout: { ...drawing.layout, bends } };
}

function eachLink(drawing: Drawing, names: readonly string[], change: (link: LinkSpec) => LinkSpec): Drawing {
  const links = drawing.spec.links.map((link) => (names.includes(linkName(link)) ? change(link) : link));
  return withSpec(drawing, { links });
}

/** The distance from a point to the nearest point of a segment. */
function distance(at: Point, from: Point, to: Point): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const along = ((at.x - from.x) * dx + (at.y - from.y) * dy) / (dx * dx + dy * dy || 1);
  const t = Math.min(1, Math.max(0, along));
  return Math.hypot(at.x - from.x - t * dx, at.y - from.y - t * dy);
}

const rounded = ({ x, y }: Point): Point => ({ x: Math.round(x), y: Math.round(y) });
