/** Lines with bends: beside another one, and against boxes. */
import type { Box } from './border';
import type { Point } from './point';

/** How much farther than its neighbours a corner may be moved, where a line turns back sharply. */
const MOST = 3;

/** The line at this distance beside another one, to its left in the direction of the line for y downwards. */
export function beside(line: readonly Point[], distance: number): Point[] {
  const normals = line.slice(1).map((to, index) => normal(line[index]!, to));
  return line.map(({ x, y }, index) => {
    const one = normals[index - 1] ?? normals[index] ?? { x: 0, y: 0 };
    const other = normals[index] ?? one;
    const scale = distance / Math.max(1 / MOST, (1 + one.x * other.x + one.y * other.y) / 2);
    return { x: x + ((one.x + other.x) / 2) * scale, y: y + ((one.y + other.y) / 2) * scale };
  });
}

/** Whether any part of the line is inside the box. */
export function crosses(line: readonly Point[], box: Box): boolean {
  return line.slice(1).some((to, index) => enters(line[index]!, to, box));
}

function normal(from: Point, to: Point): Point {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const length = Math.hypot(dx, dy) || 1;
  return { x: -dy / length, y: dx / length };
}

/** Whether something of a segment is inside a box (Liang and Barsky's clipping). */
function enters(from: Point, to: Point, { center, width, height }: Box): boolean {
  let [first, last] = [0, 1];
  for (const [at, step, middle, half] of [
    [from.x, to.x - from.x, center.x, width / 2],
    [from.y, to.y - from.y, center.y, height / 2],
  ] as const) {
    if (step === 0) {
      if (Math.abs(at - middle) >= half) return false;
      continue;
    }
    const [one, other] = [(middle - half - at) / step, (middle + half - at) / step];
    first = Math.max(first, Math.min(one, other));
    last = Math.min(last, Math.max(one, other));
  }
  return first < last;
}

/** A line as the data of an SVG path. */
export function pathOf(line: readonly Point[]): string {
  return `M ${line.map(({ x, y }) => `${x} ${y}`).join(' L ')}`;
}
