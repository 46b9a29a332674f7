/** Paints lines over the same time axis as a timeline: one track per quantity. */
import type { CanvasColors } from '../charts/colors';
import { drawMoments, drawTicks } from './axis';
import { xOf } from './scale';
import type { Viewport } from './viewport';

export interface TrackLine {
  color: string;
  length: number;
  timeAt: (index: number) => number;
  valueAt: (index: number) => number;
  /** Whether no line leads to a point from the one before it. */
  beginsAt?: (index: number) => boolean;
  /** A value that holds until the next one. */
  step?: boolean;
  dashed?: boolean;
  /** Every point is marked, where there is room. */
  dots?: boolean;
  strong?: boolean;
}

export interface TrackScene {
  ctx: CanvasRenderingContext2D;
  width: number;
  height: number;
  colors: CanvasColors;
  density: { labelWidth: number };
  viewport: Viewport;
  lines: readonly TrackLine[];
  /** The value at the top; null for the largest one that is visible. */
  top: number | null;
  title: string;
  /** What the lines are at the cursor, below the title. */
  values: readonly string[];
  format: (value: number) => string;
  changes: readonly { time_s: number }[];
}

const PAD = 4;
/** Pixels above the largest value, for the text that says what it is. */
const ABOVE = 15;
const MAX_DOTS = 160;
/** Corners per pixel of width from which on a line is drawn as columns. */
const DENSE = 0.5;

export function drawTrack(scene: TrackScene): void {
  const { ctx, width, height, colors, density, viewport } = scene;
  ctx.fillStyle = colors.surface;
  ctx.fillRect(0, 0, width, height);
  drawTicks(scene, 0);
  const ranges = scene.lines.map((line) => visible(line, viewport));
  const top = scene.top ?? largest(scene.lines, ranges);
  ctx.save();
  ctx.beginPath();
  ctx.rect(density.labelWidth, 0, width - density.labelWidth, height);
  ctx.clip();
  const y = (value: number) => height - PAD - (value / (top || 1)) * (height - PAD - ABOVE);
  scene.lines.forEach((line, at) => drawLine(scene, line, ranges[at]!, y));
  ctx.restore();
  drawMoments(scene, scene.changes, 0);
  drawNames(scene, top);
}

/** Indices [first, last) of the points in view, with one more on either side. */
function visible(line: TrackLine, viewport: Viewport): [number, number] {
  const bound = (time_s: number) => {
    let low = 0;
    let high = line.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (line.timeAt(middle) < time_s) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return [Math.max(0, bound(viewport.start_s) - 1), Math.min(line.length, bound(viewport.end_s) + 1)];
}

function largest(lines: readonly TrackLine[], ranges: readonly [number, number][]): number {
  let most = 0;
  lines.forEach((line, at) => {
    const [first, last] = ranges[at]!;
    for (let index = first; index < last; index += 1) most = Math.max(most, line.valueAt(index));
  });
  return most;
}

/** The corners of a line, x in pixels: of the points in one column of pixels only the first and the last, and those
 * with the smallest and the largest value. A path of all points takes as long as there are points. A corner without
 * a value (NaN) ends the line; the next one begins another. */
export function outline(
  line: TrackLine,
  [first, last]: readonly [number, number],
  viewport: Pick<Viewport, 'start_s' | 'end_s'>,
  width: number,
): [number, number][] {
  const found: [number, number][] = [];
  const xAt = (time_s: number) => ((time_s - viewport.start_s) / (viewport.end_s - viewport.start_s)) * width;
  let column = NaN;
  let value = 0;
  for (let index = first; index < last;) {
    const x = xAt(line.timeAt(index));
    if (line.step && index > first) found.push([x, value]);
    if (line.beginsAt?.(index)) found.push([x, NaN]);
    column = Math.floor(x);
    value = line.valueAt(index);
    found.push([x, value]);
    let [least, most] = [value, value];
    let end = x;
    for (index += 1; index < last; index += 1) {
      const next = xAt(line.timeAt(index));
      if (Math.floor(next) !== column) break;
      end = next;
      value = line.valueAt(index);
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
    if (least !== most) found.push([end, least], [end, most], [end, value]);
  }
  if (line.step && last === line.length && last > first) found.push([width, value]);
  return found;
}

/** The least and the largest value of a line in every column of pixels; NaN where it has none. */
export function extent(corners: readonly (readonly [number, number])[], width: number): [number, number][] {
  const found = Array.from({ length: Math.ceil(width) }, (): [number, number] => [NaN, NaN]);
  for (let index = 1; index < corners.length; index += 1) {
    const [x0, value0] = corners[index - 1]!;
    const [x1, value1] = corners[index]!;
    if (Number.isNaN(value0) || Number.isNaN(value1)) continue;
    const valueAt = (x: number) => (x1 > x0 ? value0 + ((x - x0) / (x1 - x0)) * (value1 - value0) : value1);
    const last = Math.min(Math.floor(x1), found.length - 1);
    for (let column = Math.max(0, Math.floor(x0)); column <= last; column += 1) {
      const ends = [x0 < column ? valueAt(column) : value0, x1 > column + 1 ? valueAt(column + 1) : value1];
      const both = [...ends, ...found[column]!].filter((value) => !Number.isNaN(value));
      found[column] = [Math.min(...both), Math.max(...both)];
    }
  }
  return found;
}

/** Rectangles of a dense line, columns that are alike as one: a path that crosses a row of pixels hundreds of times
 * takes the browser ten times as long. */
function fillColumns(
  ctx: CanvasRenderingContext2D,
  columns: readonly [number, number][],
  left: number,
  y: (value: number) => number,
): void {
  let first = 0;
  for (let column = 1; column <= columns.length; column += 1) {
    const [least, most] = columns[first]!;
    if (columns[column]?.[0] === least && columns[column]?.[1] === most) continue;
    const top = y(most) - ctx.lineWidth / 2;
    if (!Number.isNaN(most))
      ctx.fillRect(left + first, top, column - first, y(least) - top + ctx.lineWidth / 2);
    first = column;
  }
}

function drawLine(
  { ctx, width, density, viewport }: TrackScene,
  line: TrackLine,
  [first, last]: [number, number],
  y: (value: number) => number,
): void {
  ctx.save();
  ctx.strokeStyle = line.color;
  ctx.fillStyle = line.color;
  ctx.lineWidth = line.strong ? 2.25 : 1.5;
  if (line.dashed) ctx.setLineDash([5, 4]);
  const span = width - density.labelWidth;
  const corners = outline(line, [first, last], viewport, span);
  if (corners.length > DENSE * span && !line.dashed) {
    fillColumns(ctx, extent(corners, span), density.labelWidth, y);
  } else {
    ctx.beginPath();
    let isDown = false;
    for (const [x, value] of corners) {
      const hasValue = !Number.isNaN(value);
      if (hasValue && isDown) ctx.lineTo(density.labelWidth + x, y(value));
      else if (hasValue) ctx.moveTo(density.labelWidth + x, y(value));
      isDown = hasValue;
    }
    ctx.stroke();
  }
  if (line.dots && last - first <= MAX_DOTS) {
    for (let index = first; index < last; index += 1) {
      ctx.beginPath();
      const x = xOf(line.timeAt(index), viewport, width, density.labelWidth);
      ctx.arc(x, y(line.valueAt(index)), 2.2, 0, 2 * Math.PI);
      ctx.fill();
    }
  }
  ctx.restore();
}

function drawNames({ ctx, width, height, colors, density, title, values, format }: TrackScene, top: number) {
  ctx.fillStyle = colors.surface;
  ctx.fillRect(0, 0, density.labelWidth, height);
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'left';
  ctx.font = colors.font;
  ctx.fillStyle = colors.text;
  ctx.fillText(title, 2, 9);
  ctx.font = colors.smallFont;
  ctx.fillStyle = colors.dim;
  values.forEach((value, at) => {
    if (24 + at * 13 < height) ctx.fillText(value, 2, 24 + at * 13, density.labelWidth - 6);
  });
  ctx.textAlign = 'right';
  if (top > 0) ctx.fillText(format(top), width - 3, 8);
  ctx.strokeStyle = colors.line;
  ctx.beginPath();
  ctx.moveTo(0, height - 0.5);
  ctx.lineTo(width, height - 0.5);
  ctx.stroke();
}
