/** Adds several nodes at once, each where there is room. */
import type { Drawing } from './drawing';
import type { Point } from './point';

export type Add = (drawing: Drawing, at: Point) => { drawing: Drawing; name: string };

/** Pixels between the centres of neighbours: a link's label has room between two cards. */
const ACROSS = 320;
const DOWN = 136;

/** The drawing with `count` more nodes around a point, beside the nodes that are there; and their names. */
export function addAround(
  drawing: Drawing,
  middle: Point,
  count: number,
  add: Add,
): { drawing: Drawing; names: readonly string[] } {
  let next = drawing;
  const names: string[] = [];
  for (let number = 0; number < count; number += 1) {
    const added = add(next, freeSpot(middle, Object.values(next.layout.positions)));
    next = added.drawing;
    names.push(added.name);
  }
  return { drawing: next, names };
}

/** The first free spot from the middle, row by row. */
function freeSpot(middle: Point, taken: readonly Point[]): Point {
  for (let row = 0; ; row += 1) {
    for (const column of [0, -1, 1]) {
      const at = { x: middle.x + column * ACROSS, y: middle.y + row * DOWN };
      if (taken.every(({ x, y }) => Math.abs(x - at.x) > 200 || Math.abs(y - at.y) > 90)) return at;
    }
  }
}
