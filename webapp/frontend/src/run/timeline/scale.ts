/** Where a time is on a canvas whose left `labelWidth` pixels are for names. */
import type { Viewport } from './viewport';

/** Pixels from the left of a time. */
export function xOf(time_s: number, viewport: Viewport, width: number, labelWidth: number): number {
  const share = (time_s - viewport.start_s) / (viewport.end_s - viewport.start_s);
  return labelWidth + share * (width - labelWidth);
}

export function timeAt(x: number, viewport: Viewport, width: number, labelWidth: number): number {
  const share = (x - labelWidth) / Math.max(width - labelWidth, 1);
  return viewport.start_s + share * (viewport.end_s - viewport.start_s);
}
