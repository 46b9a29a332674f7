/** Where the marks of a figure lie, in pixels, and which of them a box or an arrow key reaches. */
import type { FigureData, Hidden, Mark, Quartiles, Source, Spot } from './model';
import { isBanded, shownLines } from './model';
import type { XScale, YScale } from './scales';

export interface Placed {
  /** Unique within the figure: panel, label, source and x. */
  key: string;
  panel: number;
  label: string;
  source: Source;
  mark: Mark;
  /** Place of the label in the experiment: chooses colour and shape. */
  place: number;
  spot: Spot;
  cx: number;
  /** null: there is no value, or none that the axis has a place for. */
  cy: number | null;
  low: number | null;
  high: number | null;
  /** The box of the values, in a figure of boxes. */
  box: PlacedBox | null;
  /** Heights of values that are not valid. */
  leftOut: readonly number[];
  /** Width of the bar or box; 0 where there are none. */
  width: number;
}

interface PlacedBox {
  least: number;
  lower: number;
  median: number;
  upper: number;
  most: number;
}

interface Frame {
  x: XScale;
  y: YScale;
}

/**
 * All visible marks of one panel. In a bar chart the sources of a label share one slot of its band; where no x has
 * marks of two labels, a slot is the whole band.
 */
export function placeSpots(data: FigureData, panel: number, hidden: Hidden, { x, y }: Frame): Placed[] {
  const shown = shownLines(data.panels[panel]!, data.series, hidden);
  const slots = [...new Set(shown.map(({ place }) => place))].toSorted((a, b) => a - b);
  const alone = !hasCompany(shown);
  const slot = slotOf(data, x, alone ? 1 : Math.max(slots.length, 1));
  return shown.flatMap(({ line, place }) =>
    line.spots.map((spot): Placed => {
      const shift = alone ? 0 : (slots.indexOf(place) - (slots.length - 1) / 2) * slot;
      // A logarithmic axis has no place for 0: such a mark gets the sign of one without a value.
      const mean = data.y.log && spot.y !== null && spot.y <= 0 ? null : spot.y;
      const shown = mean !== null;
      return {
        key: `${panel}/${line.label}/${line.world}/${spot.x}`,
        panel,
        label: line.label,
        source: line.world,
        mark: line.mark,
        place,
        spot,
        cx: x.of(spot.x) + shift,
        cy: shown ? y.of(mean) : null,
        low: shown && spot.low !== null ? y.of(spot.low) : null,
        high: shown && spot.high !== null ? y.of(spot.high) : null,
        box: shown && data.kind === 'boxes' && spot.box ? placeBox(spot.box, y) : null,
        leftOut: spot.left_out
          .map(({ value }) => value)
          .filter((value) => !data.y.log || value > 0)
          .map(y.of),
        width: isBanded(data.kind) ? slot * 0.86 : 0,
      };
    }),
  );
}

/** Points at one category stand a little apart, so that their intervals do not cover each other. */
const APART_PX = 16;

function slotOf({ kind, x: { categories } }: FigureData, { band }: XScale, count: number): number {
  if (isBanded(kind)) return band / count;
  return kind === 'scatter' && categories ? Math.min(APART_PX, band / count) : 0;
}

/** Whether some x has marks of several labels. */
function hasCompany(shown: ReturnType<typeof shownLines>): boolean {
  const first = new Map<number | string, number>();
  return shown.some(({ line, place }) =>
    line.spots.some(({ x }) => {
      const there = first.get(x) ?? place;
      first.set(x, there);
      return there !== place;
    }),
  );
}

function placeBox({ least, lower, median, upper, most }: Quartiles, y: YScale): PlacedBox {
  return {
    least: y.of(least),
    lower: y.of(lower),
    median: y.of(median),
    upper: y.of(upper),
    most: y.of(most),
  };
}

/** Marks of one series between gaps: what a line connects. Published values are never connected by a line. */
export function segments(placed: readonly Placed[]): Placed[][] {
  const series = new Map<string, Placed[]>();
  for (const one of placed) {
    if (one.mark === 'published') continue;
    const key = `${one.label}/${one.source}`;
    series.set(key, [...(series.get(key) ?? []), one]);
  }
  return [...series.values()].flatMap((line) => {
    const parts: Placed[][] = [[]];
    for (const one of line.toSorted((a, b) => a.cx - b.cx)) {
      if (one.cy === null) parts.push([]);
      else parts.at(-1)?.push(one);
    }
    return parts.filter((part) => part.length > 0);
  });
}

export function linePath(segment: readonly Placed[]): string {
  return segment
    .map(({ cx, cy }, at) => `${at ? 'L' : 'M'}${cx.toFixed(1)} ${(cy ?? 0).toFixed(1)}`)
    .join('');
}

/** The area between the bounds of the intervals along a line; empty if some mark has none. */
export function bandPath(segment: readonly Placed[]): string {
  if (segment.length < 2 || segment.some(({ low, high }) => low === null || high === null)) return '';
  const up = segment.map(({ cx, high }, at) => `${at ? 'L' : 'M'}${cx.toFixed(1)} ${(high ?? 0).toFixed(1)}`);
  const back = segment.toReversed().map(({ cx, low }) => `L${cx.toFixed(1)} ${(low ?? 0).toFixed(1)}`);
  return `${up.join('')}${back.join('')}Z`;
}

export interface Box {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
}

/** Marks with a value inside a box that was drawn in any direction. */
export function inside(placed: readonly Placed[], { x0, y0, x1, y1 }: Box): Placed[] {
  const [left, right] = [Math.min(x0, x1), Math.max(x0, x1)];
  const [top, bottom] = [Math.min(y0, y1), Math.max(y0, y1)];
  return placed.filter(({ cx, cy }) => cy !== null && cx >= left && cx <= right && cy >= top && cy <= bottom);
}

/** Pixels from the pointer within which a mark counts as meant. */
const REACH_PX = 26;

/** The mark next to the pointer; in a bar chart that in whose bar the pointer is, else the next one. */
export function nearest(placed: readonly Placed[], x: number, y: number, height: number): Placed | null {
  let best: Placed | null = null;
  let least = REACH_PX;
  for (const one of placed) {
    const cy = one.cy ?? height - 7;
    const besides = Math.max(Math.abs(one.cx - x) - one.width / 2, 0);
    const distance = Math.hypot(one.width > 0 ? besides : one.cx - x, one.width > 0 && y > cy ? 0 : cy - y);
    if (distance < least) [best, least] = [one, distance];
  }
  return best;
}

export type Step = 'left' | 'right' | 'up' | 'down' | 'first' | 'last';

/**
 * The mark that an arrow key goes to: left and right along the series, then on in the next one; up and down to the
 * next spot with this x.
 */
export function stepFrom(placed: readonly Placed[], key: string | null, step: Step): string | null {
  const at = placed.findIndex((one) => one.key === key);
  if (placed.length === 0) return null;
  if (at < 0 || step === 'first') return placed[0]?.key ?? null;
  if (step === 'last') return placed.at(-1)?.key ?? null;
  if (step === 'left' || step === 'right') {
    const next = at + (step === 'right' ? 1 : -1);
    return placed[Math.min(Math.max(next, 0), placed.length - 1)]?.key ?? null;
  }
  const here = placed[at]!;
  const column = placed
    .filter((one) => one.panel === here.panel && one.spot.x === here.spot.x)
    .toSorted((a, b) => (a.cy ?? Infinity) - (b.cy ?? Infinity));
  const row = column.indexOf(here) + (step === 'up' ? -1 : 1);
  return column[Math.min(Math.max(row, 0), column.length - 1)]?.key ?? null;
}
