import type { Point } from './autoLayout';

export interface Box {
  center: Point;
  width: number;
  height: number;
}

/** The box with this upper left corner. */
export function boxAt({ x, y }: Point, { width = 0, height = 0 }: Partial<Omit<Box, 'center'>>): Box {
  return { center: { x: x + width / 2, y: y + height / 2 }, width, height };
}

/** Where the line from the middle of `box` towards `to` leaves the box. */
export function borderPoint(box: Box, to: Point): Point {
  const [dx, dy] = [to.x - box.center.x, to.y - box.center.y];
  if (dx === 0 && dy === 0) return box.center;
  const scale = Math.min(box.width / 2 / Math.abs(dx || 1e-9), box.height / 2 / Math.abs(dy || 1e-9), 1);
  return { x: box.center.x + dx * scale, y: box.center.y + dy * scale };
}
