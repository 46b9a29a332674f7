/** Scales and ticks of a figure's axes (d3-scale). */
import {
  type ScaleLinear,
  type ScaleLogarithmic,
  scaleBand,
  scaleLinear,
  scaleLog,
  scalePoint,
} from 'd3-scale';
import { three } from '@/format/units';
import type { Axis, FigureData, Hidden, Spot } from './model';
import { isBanded, NOTHING_HIDDEN, shownLines } from './model';

interface Tick {
  at: number;
  text: string;
}

/** x of a spot in pixels, and the width of its band (0 on a numeric axis). */
export interface XScale {
  of: (x: number | string) => number;
  ticks: Tick[];
  band: number;
}

export interface YScale {
  of: (value: number) => number;
  ticks: Tick[];
  /** Value below which nothing is drawn: 0 on a linear axis. */
  floor: number;
}

/** Every visible spot of all panels: their axes are shared. */
export function visibleSpots(data: FigureData, hidden: Hidden): Spot[] {
  return data.panels.flatMap((panel) =>
    shownLines(panel, data.series, hidden).flatMap(({ line }) => [...line.spots]),
  );
}

const PADDING_FRAC = 0.06;
const CHARACTER_PX = 7;

export function xScale(data: FigureData, width: number): XScale {
  if (data.x.categories) return categorical(data.x.categories, isBanded(data.kind), width);
  const spots = visibleSpots(data, NOTHING_HIDDEN);
  const values = [...new Set(spots.map(({ x }) => Number(x)))].toSorted((a, b) => a - b);
  const first = values[0] ?? 0;
  const last = values.at(-1) ?? 1;
  const log = data.x.log && first > 0;
  const padding = Math.max(14, width * PADDING_FRAC);
  const scale = (log ? scaleLog() : scaleLinear())
    .domain(first === last ? around(first) : [first, last])
    .range([padding, Math.max(padding + 1, width - padding)]);
  // Tested values are the ticks: they are few, and they are what was asked for.
  const tested = data.x.ticks?.map(({ value, text }) => ({ at: scale(value), text }));
  return { of: (x) => scale(Number(x)), band: 0, ticks: apart(tested ?? free(data.x, scale), CHARACTER_PX) };
}

/** Ticks where a scale has round numbers, in the multiple of the unit that stands in the axis' title. */
function free(axis: Axis, scale: ScaleLinear<number, number> | ScaleLogarithmic<number, number>): Tick[] {
  const [low, high] = scale.domain() as [number, number];
  const values = 'base' in scale ? logTicks([low, high]) : scale.ticks(6);
  return values.map((value) => ({ at: scale(value), text: three(value / axis.factor, 6) }));
}

function around(value: number): [number, number] {
  return value > 0 ? [value / 2, value * 2] : [value - 1, value + 1];
}

function categorical(categories: readonly string[], banded: boolean, width: number): XScale {
  if (banded) {
    const scale = scaleBand<string>()
      .domain(categories)
      .range([0, width])
      .paddingInner(0.24)
      .paddingOuter(0.14);
    const half = scale.bandwidth() / 2;
    return {
      of: (x) => (scale(String(x)) ?? 0) + half,
      band: scale.bandwidth(),
      ticks: apart(
        categories.map((text) => ({ at: (scale(text) ?? 0) + half, text })),
        CHARACTER_PX,
      ),
    };
  }
  const scale = scalePoint<string>().domain(categories).range([0, width]).padding(0.5);
  return {
    of: (x) => scale(String(x)) ?? 0,
    band: scale.step(),
    ticks: apart(
      categories.map((text) => ({ at: scale(text) ?? 0, text })),
      CHARACTER_PX,
    ),
  };
}

/** Leaves out ticks whose texts would overlap the one before; `perCharacter` in pixels. */
export function apart(ticks: readonly Tick[], perCharacter: number): Tick[] {
  const kept: Tick[] = [];
  for (const tick of ticks) {
    const before = kept.at(-1);
    const room = before ? ((before.text.length + tick.text.length) / 2) * perCharacter + 8 : 0;
    if (!before || tick.at - before.at >= room) kept.push(tick);
  }
  return kept;
}

export function yScale(data: FigureData, hidden: Hidden, height: number): YScale {
  const values = visibleSpots(data, hidden).flatMap(({ y: mean, low, high, repeats, left_out, box }) =>
    [mean, low, high, box?.least, box?.most, ...[...repeats, ...left_out].map(({ value }) => value)].filter(
      (value) => value !== null && value !== undefined,
    ),
  );
  const top = Math.max(...values, 0);
  const positive = values.filter((value) => value > 0);
  if (data.y.log && positive.length > 0) {
    const scale = scaleLog()
      .domain([Math.min(...positive) / 1.25, top * 1.25])
      .range([height, 0]);
    const floor = scale.domain()[0] ?? 0;
    return {
      of: (value) => scale(Math.max(value, floor)),
      floor,
      ticks: free(data.y, scale),
    };
  }
  const bottom = Math.min(...values, 0);
  const scale = scaleLinear()
    .domain([bottom, top > bottom ? top + (top - bottom) * 0.06 : bottom + 1])
    .nice(6)
    .range([height, 0]);
  return {
    of: (value) => scale(value),
    floor: 0,
    ticks: free(data.y, scale),
  };
}

/** 1, 2 and 5 times powers of ten within the bounds; only powers of ten over more than three decades. */
export function logTicks([low, high]: readonly [number, number]): number[] {
  const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
  const steps = to - from > 4 ? [1] : [1, 2, 5];
  const ticks: number[] = [];
  for (let power = from; power <= to; power += 1)
    for (const step of steps) {
      const value = Number(`${step}e${power}`);
      if (value >= low && value <= high) ticks.push(value);
    }
  return ticks;
}
