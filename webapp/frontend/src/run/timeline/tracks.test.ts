import { describe, expect, it } from 'vitest';

import type { CanvasColors } from '../charts/colors';
import { drawTrack, extent, outline, type TrackLine } from './tracks';
import { Viewport } from './viewport';

const WIDTH = 20;
const viewport = { start_s: 0, end_s: 10 };

function line(times: readonly number[], values: readonly number[], step: boolean): TrackLine {
  return {
    color: '',
    step,
    length: times.length,
    timeAt: (index) => times[index]!,
    valueAt: (index) => values[index]!,
  };
}

describe('outline', () => {
  const times = Array.from({ length: 400 }, (_, index) => index / 40);
  const values = times.map((time_s, index) => Math.sin(time_s) + ((index * 37) % 11) / 10);

  it('has the extremes of every column of pixels, and not many more points', () => {
    for (const step of [false, true]) {
      const corners = outline(line(times, values, step), [0, times.length], viewport, WIDTH);
      expect(corners.length).toBeLessThanOrEqual(5 * WIDTH + 1);
      for (let column = 0; column < WIDTH; column += 1) {
        const all = values.filter((_, index) => Math.floor((times[index]! * WIDTH) / 10) === column);
        const kept = corners.filter(([x]) => Math.floor(x) === column).map(([, value]) => value);
        expect(Math.max(...kept)).toBeGreaterThanOrEqual(Math.max(...all));
        expect(Math.min(...kept)).toBeLessThanOrEqual(Math.min(...all));
        expect(all).toContain(kept.at(-1));
      }
    }
  });

  it('is every point where they are far apart', () => {
    expect(outline(line([1, 2, 4], [5, 6, 7], false), [0, 3], viewport, WIDTH)).toEqual([
      [2, 5],
      [4, 6],
      [8, 7],
    ]);
  });

  it('ends before a point that begins another line, also where the line is drawn as columns', () => {
    const broken = { ...line([1, 2, 6, 7], [5, 6, 7, 8], false), beginsAt: (index: number) => index === 2 };
    const corners = outline(broken, [0, 4], viewport, WIDTH);
    expect(corners).toEqual([
      [2, 5],
      [4, 6],
      [12, NaN],
      [12, 7],
      [14, 8],
    ]);
    const drawn = extent(corners, WIDTH).map(([least]) => !Number.isNaN(least));
    expect(drawn.slice(5, 12)).toEqual(Array.from({ length: 7 }, () => false));
    expect([drawn[2], drawn[3], drawn[12], drawn[13]]).toEqual([true, true, true, true]);
  });

  it('keeps the value of a step until the next one, and the last one until the edge', () => {
    expect(outline(line([1, 2], [5, 6], true), [0, 2], viewport, WIDTH)).toEqual([
      [2, 5],
      [4, 5],
      [4, 6],
      [20, 6],
    ]);
  });
});

describe('extent', () => {
  it('has the least and the largest value of a line in every column, also of one that only crosses it', () => {
    const corners: [number, number][] = [
      [0.5, 0],
      [1.5, 4],
      [1.75, -1],
      [4, 8],
    ];
    expect(extent(corners, 6)).toEqual([
      [0, 2],
      [-1, 4],
      [0, 4],
      [4, 8],
      [8, 8],
      [NaN, NaN],
    ]);
  });

  it('agrees with a fine walk along the line', () => {
    const times = Array.from({ length: 60 }, (_, index) => (index + (index % 3) / 4) / 6.1);
    const values = times.map((_, index) => (index * 29) % 17);
    for (const step of [false, true]) {
      const corners = outline(line(times, values, step), [0, times.length], viewport, WIDTH);
      const walked = Array.from({ length: WIDTH }, (): number[] => []);
      for (let index = 1; index < corners.length; index += 1) {
        const [x0, value0] = corners[index - 1]!;
        const [x1, value1] = corners[index]!;
        for (let part = 0; part <= 1000; part += 1) {
          const x = x0 + ((x1 - x0) * part) / 1000;
          walked[Math.floor(x)]?.push(value0 + ((value1 - value0) * part) / 1000);
        }
      }
      extent(corners, WIDTH).forEach(([least, most], column) => {
        expect(Math.abs(least - Math.min(...walked[column]!))).toBeLessThan(0.1);
        expect(Math.abs(most - Math.max(...walked[column]!))).toBeLessThan(0.1);
      });
    }
  });
});

describe('drawTrack', () => {
  it('leaves room above the largest value for the text that says it', () => {
    const heights: number[] = [];
    const texts = new Map<string, number>();
    const ctx = new Proxy({} as CanvasRenderingContext2D, {
      get: (_, name) => (x: unknown, y: number, z: number) => {
        if (name === 'lineTo' && typeof x === 'number' && x > 100) heights.push(y);
        if (name === 'fillText') texts.set(String(x), z);
      },
      set: () => true,
    });
    drawTrack({
      ctx,
      width: 300,
      height: 60,
      colors: {} as CanvasColors,
      density: { labelWidth: 100 },
      viewport: Object.assign(new Viewport(false), { start_s: 0, end_s: 10 }),
      lines: [line([2, 4, 6], [5, 8, 8], false)],
      top: null,
      title: 'Latency',
      values: [],
      format: (value) => `${value} ms`,
      changes: [],
    });
    // Its text is 11 px high, around this height.
    expect(Math.min(...heights)).toBeGreaterThanOrEqual(texts.get('8 ms')! + 5.5);
  });
});
