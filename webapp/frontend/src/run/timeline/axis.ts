/** What all canvases over one viewport have in common: ticks, changes of the cluster, the cursor, the shown instant. */
import { seconds } from '@/format/units';
import type { CanvasColors } from '../charts/colors';
import { xOf } from './scale';
import { tickLabel, tickStep, type Viewport } from './viewport';

export interface Plane {
  ctx: CanvasRenderingContext2D;
  width: number;
  height: number;
  colors: CanvasColors;
  density: { labelWidth: number };
  viewport: Viewport;
}

/** Vertical lines at round times; their labels where the axis has a height. */
export function drawTicks(
  { ctx, width, height, colors, density, viewport }: Plane,
  axisHeight: number,
): void {
  const { labelWidth } = density;
  const step = tickStep(viewport.end_s - viewport.start_s, (width - labelWidth) / 110);
  ctx.font = colors.font;
  ctx.textBaseline = 'middle';
  for (let time = Math.ceil(viewport.start_s / step) * step; time <= viewport.end_s; time += step) {
    const x = Math.round(xOf(time, viewport, width, labelWidth)) + 0.5;
    if (x < labelWidth) continue;
    line(ctx, colors.line, x, Math.max(axisHeight - 6, 0), height);
    if (axisHeight === 0) continue;
    ctx.fillStyle = colors.dim;
    const label = tickLabel(time, step);
    ctx.textAlign = x + ctx.measureText(label).width / 2 > width ? 'right' : 'center';
    ctx.fillText(label, Math.min(x, width - 2), axisHeight / 2 - 2);
  }
}

/** Dashed lines at the changes, a line at the cursor, and a strong one at the instant that the page shows. */
export function drawMoments(plane: Plane, changes: readonly { time_s: number }[], axisHeight: number): void {
  const { ctx, width, height, colors, density, viewport } = plane;
  const at = (time_s: number, draw: (x: number) => void) => {
    const x = Math.round(xOf(time_s, viewport, width, density.labelWidth)) + 0.5;
    if (x >= density.labelWidth && x <= width) draw(x);
  };
  ctx.save();
  ctx.setLineDash([4, 3]);
  for (const { time_s } of changes)
    at(time_s, (x) => {
      line(ctx, colors.injection, x, Math.max(axisHeight - 8, 0), height);
      if (axisHeight === 0) return;
      ctx.fillStyle = colors.injection;
      ctx.beginPath();
      ctx.moveTo(x - 4, axisHeight - 10);
      ctx.lineTo(x + 4, axisHeight - 10);
      ctx.lineTo(x, axisHeight - 4);
      ctx.fill();
    });
  ctx.restore();
  if (viewport.cursor_s !== null) at(viewport.cursor_s, (x) => line(ctx, colors.dim, x, 0, height));
  if (viewport.instant_s === null) return;
  ctx.save();
  ctx.lineWidth = 2;
  at(viewport.instant_s, (x) => line(ctx, colors.instant, x, 0, height));
  ctx.restore();
}

/** The stretch that a person marks, and on the axis how long it is. */
export function drawMarked(
  { ctx, width, height, colors, density, viewport }: Plane,
  axisHeight: number,
): void {
  const { marked } = viewport;
  if (!marked) return;
  const at = (time_s: number) =>
    Math.min(Math.max(xOf(time_s, viewport, width, density.labelWidth), density.labelWidth), width);
  const from = at(Math.min(marked.from_s, marked.to_s));
  const to = at(Math.max(marked.from_s, marked.to_s));
  ctx.save();
  ctx.fillStyle = colors.instant;
  ctx.globalAlpha = 0.18;
  ctx.fillRect(from, 0, to - from, height);
  ctx.globalAlpha = 1;
  for (const x of [from, to]) line(ctx, colors.instant, x, 0, height);
  const label = seconds(Math.abs(marked.to_s - marked.from_s));
  ctx.font = colors.font;
  const wide = ctx.measureText(label).width + 8;
  if (axisHeight > 0 && wide < to - from) {
    const left = (from + to - wide) / 2;
    ctx.fillStyle = colors.surface;
    ctx.fillRect(left, 1, wide, axisHeight - 4);
    ctx.fillStyle = colors.text;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    ctx.fillText(label, (from + to) / 2, axisHeight / 2 - 1);
  }
  ctx.restore();
}

function line(ctx: CanvasRenderingContext2D, color: string, x: number, from: number, to: number): void {
  ctx.strokeStyle = color;
  ctx.beginPath();
  ctx.moveTo(x, from);
  ctx.lineTo(x, to);
  ctx.stroke();
}
