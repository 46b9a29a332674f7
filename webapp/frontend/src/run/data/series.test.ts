import { describe, expect, it } from 'vitest';
import { Series } from './series';

describe('Series', () => {
  it('has the value of the newest point that is not later', () => {
    const series = new Series();
    series.push(1, 10);
    series.push(3, 30);
    expect([0.5, 1, 2.9, 3, 9].map((time_s) => series.at(time_s, -1))).toEqual([-1, 10, 10, 30, 30]);
  });

  it('stays bounded, in order, and always has the first and the newest point', () => {
    const series = new Series();
    for (let time = 0; time < 50_000; time += 1) {
      series.push(time, time);
      if (time % 997 === 0) expect(series.timeAt(series.length - 1)).toBe(time);
    }
    expect(series.timeAt(series.length - 1)).toBe(49_999);
    expect(series.length).toBeLessThanOrEqual(4096);
    expect(series.length).toBeGreaterThan(1000);
    expect(series.timeAt(0)).toBe(0);
    const gaps = Array.from(
      { length: series.length - 2 },
      (_, at) => series.timeAt(at + 1) - series.timeAt(at),
    );
    expect(Math.max(...gaps)).toBe(Math.min(...gaps));
  });
});
