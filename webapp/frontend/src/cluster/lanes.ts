/** Which of several links between the same two cards is drawn where. */
import type { Point } from './point';

interface Named {
  name: string;
  /** Names of the cards. */
  ends: readonly [string, string];
}

/** Links between the same two cards get lanes around the middle: −½ and ½, or −1, 0 and 1. */
export function lanesOf(routes: readonly Named[]): Map<string, number> {
  const together = new Map<string, string[]>();
  for (const { name, ends } of routes) {
    const pair = ends.toSorted().join(' ');
    together.set(pair, [...(together.get(pair) ?? []), name]);
  }
  return new Map(
    [...together.values()].flatMap((names) =>
      names.map((name, index) => [name, index - (names.length - 1) / 2] as const),
    ),
  );
}

/** The shift by this distance at right angles to a line, to the same side whichever end is named first. */
export function sideways(a: Point, b: Point, distance: number): Point {
  const turned = a.x > b.x || (a.x === b.x && a.y > b.y);
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const by = (distance * (turned ? -1 : 1)) / (Math.hypot(dx, dy) || 1);
  return { x: -dy * by, y: dx * by };
}
