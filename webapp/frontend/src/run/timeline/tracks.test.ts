import { describe, expect, it } from 'vitest';

import { outline, type TrackLine } from './tracks';

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

  it('keeps the value of a step until the next one, and the last one until the edge', () => {
    expect(outline(line([1, 2], [5, 6], true), [0, 2], viewport, WIDTH)).toEqual([
      [2, 5],
      [4, 5],
      [4, 6],
      [20, 6],
    ]);
  });
});
