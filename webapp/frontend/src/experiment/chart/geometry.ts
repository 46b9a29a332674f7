/** Where the marks of a figure lie, in pixels, and which of them a box or an arrow key reaches. */
import type { FigureData, Hidden, Mark, Source, Spread } from './model';
import { isBanded, shownSeries } from './model';
import type { XScale, YScale } from './scales';

export interface Placed {
  /** Unique within the figure: facet, label, source and x. */
  key: string;
  facet: number;
  label: string;
  source: Source;
  /** Place of the label in the experiment: chooses colour and shape. */
  place: number;
  mark: Mark;
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

export interface PlacedBox {
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
 * All visible marks of one facet. In a bar chart the sources of a label share one slot of its band; where no x has
 * marks of two labels, a slot is the whole band.
 */
export function placeMarks(data: FigureData, facet: number, hidden: Hidden, { x, y }: Frame): Placed[] {
  const shown = shownSeries(data.facets[facet] ?? { label: '', series: [] }, data.labels, hidden);
  const slots = [...new Set(shown.map(({ place }) => place))].toSorted((a, b) => a - b);
  const alone = !hasCompany(shown);
  const slot = slotOf(data, x, alone ? 1 : Math.max(slots.length, 1));
  return shown.flatMap(({ series, place }) =>
    series.marks.map((mark): Placed => {
      const shift = alone ? 0 : (slots.indexOf(place) - (slots.length - 1) / 2) * slot;
      // A logarithmic axis has no place for 0: such a mark gets the sign of one without a value.
      const mean = data.y.log && mark.mean !== null && mark.mean <= 0 ? null : mark.mean;
      const shown = mean !== null;
      return {
        key: `${facet}/${series.label}/${series.source}/${mark.x}`,
        facet,
        label: series.label,
        source: series.source,
        place,
        mark,
        cx: x.of(mark.x) + shift,
        cy: shown ? y.of(mean) : null,
        low: shown && mark.low !== null ? y.of(mark.low) : null,
        high: shown && mark.high !== null ? y.of(mark.high) : null,
        box: shown && data.kind === 'boxes' && mark.box ? placeBox(mark.box, y) : null,
        leftOut: (mark.leftOut ?? []).filter((value) => !data.y.log || value > 0).map(y.of),
        width: isBanded(data.kind) ? slot * 0.86 : 0,
      };
    }),
  );
}

/** Points at one category stand a little apart, so that their intervals do not cover each other. */
const APART_PX = 16;

function slotOf({ kind, categories }: FigureData, { band }: XScale, count: number): number {
  if (isBanded(kind)) return band / count;
  return kind === 'scatter' && categories ? Math.min(APART_PX, band / count) : 0;
}

/** Whether some x has marks of several labels. */
function hasCompany(shown: ReturnType<typeof shownSeries>): boolean {
  const first = new Map<number | string, number>();
  return shown.some(({ series, place }) =>
    series.marks.some(({ x }) => {
      const there = first.get(x) ?? place;
      first.set(x, there);
      return there !== place;
    }),
  );
}

function placeBox({ least, lower, median, upper, most }: Spread, y: YScale): PlacedBox {
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
    if (one.source === 'published') continue;
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
 * next mark with this x.
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
    .filter((one) => one.facet === here.facet && one.mark.x === here.mark.x)
    .toSorted((a, b) => (a.cy ?? Infinity) - (b.cy ?? Infinity));
  const row = column.indexOf(here) + (step === 'up' ? -1 : 1);
  return column[Math.min(Math.max(row, 0), column.length - 1)]?.key ?? null;
}
