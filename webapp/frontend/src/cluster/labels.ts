/** Where links and their labels are drawn: parallel links beside each other, labels where no card is. */
import { linkName } from '@/format/links';
import { DEVICE_SIZE, type Point, positionsOf, SWITCH_SIZE } from './autoLayout';
import { borderPoint, type Box } from './border';
import { cardsIn, hiddenIn, middleOf, shownEnds } from './groups';
import type { Drawing } from './drawing';
import { lanesOf, sideways } from './lanes';

/** Canvas units between parallel links. */
const LANE = 20;
export const GROUP_SIZE = { width: 184, height: 76 };
const LABEL = { width: 116, height: 27 };
const DOT = { width: 14, height: 14 };
const BEND = { width: 20, height: 20 };
const ALONG = [0.5, 0.42, 0.58, 0.33, 0.67, 0.25, 0.75] as const;
const ASIDE = [0, 24, -24, 48, -48, 72, -72, 96, -96] as const;

/** How a link is drawn: which of the parallel lines, and where along and beside it its label is. */
export interface Spot {
  /** Multiples of `LANE` beside the straight line between both middles. */
  lane: number;
  /** From 0 (the end a) to 1. */
  along: number;
  /** Canvas units beside the line. */
  aside: number;
  /** There is room for a dot only. */
  small?: true;
}

/** A link between two cards that are shown. */
export interface Route {
  name: string;
  /** Names of the cards. */
  ends: readonly [string, string];
  bends?: readonly Point[];
  /** The size of its label. */
  size?: Size;
}

type Size = Omit<Box, 'center'>;

/** The spot of every link of a drawing that is shown, by name. */
export function spotsOf(drawing: Drawing): Map<string, Spot> {
  const hidden = hiddenIn(drawing.layout);
  const routes = drawing.spec.links.flatMap((link): Route[] => {
    const [name, ends] = [linkName(link), shownEnds(link, hidden)];
    return ends ? [{ name, ends, bends: drawing.layout.bends[name] }] : [];
  });
  return spotsAmong(routes, boxesOf(drawing));
}

/**
 * The spot of every link, by name: no label covers a card or another label if that is possible.
 *
 * With `dots` a label is near its line, and one that would cover something becomes a dot.
 */
export function spotsAmong(
  routes: readonly Route[],
  boxes: ReadonlyMap<string, Box>,
  dots = false,
): Map<string, Spot> {
  const lanes = lanesOf(routes);
  const taken = [...boxes.values()];
  const spots = new Map<string, Spot>();
  const asides = dots ? ASIDE.slice(0, 3) : ASIDE;
  for (const { name, ends, bends: through = [], size = LABEL } of routes) {
    const [a, b] = [boxes.get(ends[0]), boxes.get(ends[1])];
    if (!a || !b) continue;
    const lane = lanes.get(name) ?? 0;
    const line = lineOf(a, b, through, lane);
    const bends = line.slice(1, -1).map((center) => ({ center, ...BEND }));
    let place = freePlace(line, [...taken, ...bends], size, asides);
    const small = dots && place.covered > 0;
    if (small) place = freePlace(line, taken, DOT, [0]);
    const { label, along, aside } = place;
    taken.push(label);
    spots.set(name, { lane, along, aside, ...(small ? { small } : {}) });
  }
  return spots;
}

/** The points of a link's line, from border to border, moved aside by its lane. */
export function lineOf(a: Box, b: Box, bends: readonly Point[], lane: number): Point[] {
  if (bends.length > 0) {
    const [first, last] = [bends[0]!, bends.at(-1)!];
    return [borderPoint(a, first), ...bends, borderPoint(b, last)];
  }
  const shift = sideways(a.center, b.center, lane * LANE);
  const moved = (box: Box): Box => ({
    ...box,
    center: { x: box.center.x + shift.x, y: box.center.y + shift.y },
  });
  return [borderPoint(within(a, shift), moved(b).center), borderPoint(within(b, shift), moved(a).center)];
}

/** The point this far along a line, moved aside from it. */
export function pointAlong(line: readonly Point[], along: number, aside = 0): Point {
  const lengths = line.slice(1).map((to, index) => Math.hypot(to.x - line[index]!.x, to.y - line[index]!.y));
  let rest = along * lengths.reduce((sum, length) => sum + length, 0);
  for (const [index, length] of lengths.entries()) {
    const [from, to] = [line[index]!, line[index + 1]!];
    if (rest <= length || index === lengths.length - 1) {
      const t = length ? Math.min(1, rest / length) : 0;
      const [dx, dy] = length ? [(to.x - from.x) / length, (to.y - from.y) / length] : [1, 0];
      return { x: from.x + t * (to.x - from.x) - dy * aside, y: from.y + t * (to.y - from.y) + dx * aside };
    }
    rest -= length;
  }
  return line[0] ?? { x: 0, y: 0 };
}

/** A box of the same middle line, moved by `shift` but not beyond its border. */
function within(box: Box, shift: Point): Box {
  const room = { x: Math.max(0, box.width / 2 - 6), y: Math.max(0, box.height / 2 - 6) };
  const x = Math.max(-room.x, Math.min(room.x, shift.x));
  const y = Math.max(-room.y, Math.min(room.y, shift.y));
  return {
    center: { x: box.center.x + x, y: box.center.y + y },
    width: box.width - 2 * Math.abs(x),
    height: box.height - 2 * Math.abs(y),
  };
}

function boxesOf(drawing: Drawing): Map<string, Box> {
  const { spec, layout } = drawing;
  const at = positionsOf(spec, layout);
  const hidden = hiddenIn(layout);
  const boxes = new Map<string, Box>();
  const add = (name: string, size: { width: number; height: number }) => {
    const center = at[name];
    if (center && !hidden.has(name)) boxes.set(name, { center, ...size });
  };
  for (const device of spec.devices) add(device.name, DEVICE_SIZE);
  for (const node of spec.switches) add(node.name, SWITCH_SIZE);
  for (const { id, group } of cardsIn(layout))
    boxes.set(id, { center: middleOf(drawing, group.members), ...GROUP_SIZE });
  return boxes;
}

interface Place {
  label: Box;
  along: number;
  aside: number;
  /** The area that it shares with others. */
  covered: number;
}

/** The first place of a label that touches no box; the one that touches least if there is none. */
function freePlace(
  line: readonly Point[],
  taken: readonly Box[],
  size: Size,
  asides: readonly number[],
): Place {
  let best: Place | null = null;
  for (const aside of asides) {
    for (const along of ALONG) {
      const label = { center: pointAlong(line, along, aside), ...size };
      const covered = taken.reduce((sum, box) => sum + overlap(label, box), 0);
      if (covered < (best?.covered ?? Infinity)) best = { label, along, aside, covered };
      if (covered === 0) return best!;
    }
  }
  return best!;
}

/** The area that two boxes share. */
function overlap(one: Box, other: Box): number {
  const width = (one.width + other.width) / 2 - Math.abs(one.center.x - other.center.x);
  const height = (one.height + other.height) / 2 - Math.abs(one.center.y - other.center.y);
  return width > 0 && height > 0 ? width * height : 0;
}
