/** Paints a timeline. Narrow spans are merged into pixels, so the cost depends on the screen, not on the spans. */
import type { PathPiece } from '@/api/types';
import { LANE_OF } from '@/run/data/parts';
import type { RunData } from '@/run/data/runData';
import { OVERLAPPING, SPAN_KINDS, type SpanRing } from '@/run/data/rings';
import type { CanvasColors } from '../charts/colors';
import { laneTop, rowHeight, type Density } from './layout';
import { drawMoments, drawTicks } from './axis';
import { Crowd } from './crowd';
import { xOf } from './scale';
import type { Viewport } from './viewport';

const NAME_MIN_WIDTH = 34;
/** Pixels below which a span is drawn together with its neighbours. */
const NARROW = 4;
/** Pixels between the lines of time that is not kept. */
const HATCH = 5;

export interface Scene {
  ctx: CanvasRenderingContext2D;
  width: number;
  height: number;
  data: RunData;
  deviceColors: Record<string, string>;
  colors: CanvasColors;
  density: Density;
  viewport: Viewport;
  path?: readonly PathPiece[];
}

export function drawTimeline(scene: Scene): void {
  const { ctx, width, height, colors } = scene;
  ctx.fillStyle = colors.surface;
  ctx.fillRect(0, 0, width, height);
  drawTicks(scene, scene.density.axisHeight);
  drawLanes(scene);
  scene.data.devices.forEach((_, row) => drawRow(scene, row));
  if (scene.path) drawPath(scene, scene.path);
  drawMoments(scene, scene.data.injections, scene.density.axisHeight);
}

/** A line through the activities, and from one device to the next; dashes are not told apart at this size, so time
 * in which nothing ended is a line in the lane of waiting. */
function drawPath({ ctx, width, colors, density, viewport }: Scene, path: readonly PathPiece[]): void {
  ctx.save();
  ctx.beginPath();
  ctx.rect(density.labelWidth, 0, width - density.labelWidth, ctx.canvas.height);
  ctx.clip();
  ctx.beginPath();
  let before = Infinity;
  for (const { device, kind, start_s, end_s } of path) {
    const lane = LANE_OF[kind];
    if (end_s < viewport.start_s || start_s > viewport.end_s) continue;
    const from = xOf(start_s, viewport, width, density.labelWidth);
    const to = xOf(end_s, viewport, width, density.labelWidth);
    const row = Math.max(0, density.lanes.indexOf(lane));
    const y = laneTop(device, row, density) + density.laneHeight / 2 - 0.5;
    if (before === Infinity) ctx.moveTo(to, y);
    else if (before - from > 0.5) ctx.lineTo(to, y);
    ctx.lineTo(from, y);
    before = from;
  }
  for (const [color, thickness] of [
    [colors.surface, 4],
    [colors.text, 1.75],
  ] as const) {
    ctx.strokeStyle = color;
    ctx.lineWidth = thickness;
    ctx.stroke();
  }
  ctx.restore();
}

function drawRow(scene: Scene, row: number): void {
  const { ctx, width, colors, density, data, deviceColors } = scene;
  const device = data.devices[row]!;
  const top = density.axisHeight + row * rowHeight(density);
  ctx.strokeStyle = colors.line;
  ctx.beginPath();
  ctx.moveTo(0, top + 0.5);
  ctx.lineTo(width, top + 0.5);
  ctx.stroke();
  if (device.failedAt_s !== null) drawFailure(scene, device.failedAt_s, top);
  ctx.fillStyle = colors.surface;
  ctx.fillRect(0, top + 1, density.labelWidth, rowHeight(density) - 1);
  const middle = top + rowHeight(density) / 2;
  ctx.fillStyle = deviceColors[device.name] ?? colors.dim;
  ctx.beginPath();
  ctx.roundRect(2, middle - 6, 4, 12, 2);
  ctx.fill();
  ctx.font = colors.font;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = device.failedAt_s === null ? colors.text : colors.bad;
  ctx.fillText(
    fitted(ctx, device.name, density.labelWidth - (density.laneHeight >= 9 ? 58 : 20)),
    12,
    middle,
  );
  if (density.laneHeight < 9) return;
  ctx.font = colors.smallFont;
  ctx.textAlign = 'right';
  ctx.fillStyle = colors.dim;
  density.lanes.forEach((lane, at) => {
    ctx.fillText(lane, density.labelWidth - 8, laneTop(row, at, density) + density.laneHeight / 2);
  });
}

/** The spans of all devices: wide ones each by itself, the others as pixels of the screen. */
function drawLanes(scene: Scene): void {
  const { ctx, width, colors, density, data } = scene;
  const perLane = density.lanes.length;
  const ratio = ctx.getTransform().a;
  const crowd = new Crowd(Math.ceil(width * ratio), data.devices.length * perLane);
  const topOf = (lane: number) => laneTop(Math.floor(lane / perLane), lane % perLane, density);
  data.devices.forEach((device, row) =>
    density.lanes.forEach((name, at) => {
      const lane = row * perLane + at;
      const narrow = (from: number, to: number, kind: number) =>
        crowd.add(lane, from * ratio, to * ratio, kind);
      drawWide(scene, device.lanes[name], topOf(lane), narrow);
      drawUnkept(scene, device.lanes[name], topOf(lane));
    }),
  );
  const byKind = SPAN_KINDS.map((kind) => colors.span[kind]);
  crowd.draw(ctx, byKind, crowd.width / ratio, spanHeight(density), topOf);
}

function spanHeight({ laneHeight }: Density): number {
  return laneHeight - (laneHeight >= 9 ? 2 : 1);
}

function drawWide(
  scene: Scene,
  ring: SpanRing,
  top: number,
  narrow: (from: number, to: number, kind: number) => void,
): void {
  const { ctx, width, colors, density, viewport } = scene;
  const left = density.labelWidth;
  const scale = (width - left) / (viewport.end_s - viewport.start_s);
  const height = spanHeight(density);
  const named = density.laneHeight >= 9;
  const first = ring.firstEndingAfter(viewport.start_s);
  const last = Math.min(ring.length, ring.firstEndingAfter(viewport.end_s) + OVERLAPPING);
  ring.forEach(first, last, (start_s, end_s, kind, index) => {
    if (end_s < viewport.start_s || start_s > viewport.end_s) return;
    const from = Math.max(left, left + (start_s - viewport.start_s) * scale);
    const to = Math.min(width, left + (end_s - viewport.start_s) * scale);
    if (to - from < NARROW) return narrow(from, to, kind);
    ctx.fillStyle = colors.span[SPAN_KINDS[kind]!];
    ctx.fillRect(from, top, to - from - 0.75, height);
    if (named && to - from > NAME_MIN_WIDTH) drawName(scene, ring, index, from, to, top + height / 2);
  });
}

/** Hatches the time of which a lane keeps nothing any more: left blank, it would look idle. */
function drawUnkept({ ctx, width, colors, density, viewport }: Scene, ring: SpanRing, top: number): void {
  if (ring.dropped === 0) return;
  const from = Math.max(density.labelWidth, xOf(0, viewport, width, density.labelWidth));
  const to = Math.min(width, xOf(ring.startAt(0), viewport, width, density.labelWidth));
  const height = spanHeight(density);
  if (to <= from) return;
  ctx.save();
  ctx.beginPath();
  ctx.rect(from, top, to - from, height);
  ctx.clip();
  ctx.beginPath();
  for (let x = from - height; x < to; x += HATCH) {
    ctx.moveTo(x, top + height);
    ctx.lineTo(x + height, top);
  }
  ctx.strokeStyle = colors.dim;
  ctx.lineWidth = 0.75;
  ctx.stroke();
  ctx.restore();
}

function drawName(
  scene: Scene,
  ring: SpanRing,
  index: number,
  from: number,
  to: number,
  middle: number,
): void {
  const { ctx, colors } = scene;
  const span = ring.view(index);
  const text = span.layer >= 0 && span.kind === 'compute' ? `${span.name} ${span.layer}` : span.name;
  ctx.font = colors.tinyFont;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = span.kind === 'wait' ? colors.onWait : colors.onSpan;
  ctx.fillText(fitted(ctx, text, to - from - 6), from + 3, middle + 0.5);
}

function drawFailure(
  { ctx, width, colors, density, viewport }: Scene,
  failedAt_s: number,
  top: number,
): void {
  const x = Math.max(density.labelWidth, xOf(failedAt_s, viewport, width, density.labelWidth));
  if (x >= width) return;
  ctx.fillStyle = colors.failed;
  ctx.fillRect(x, top + 1, width - x, rowHeight(density) - 1);
}

function fitted(ctx: CanvasRenderingContext2D, text: string, width: number): string {
  if (width < 6) return '';
  if (ctx.measureText(text).width <= width) return text;
  let keep = text.length - 1;
  while (keep > 0 && ctx.measureText(`${text.slice(0, keep)}…`).width > width) keep -= 1;
  return keep > 0 ? `${text.slice(0, keep)}…` : '';
}
