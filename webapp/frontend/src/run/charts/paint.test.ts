import { describe, expect, it } from 'vitest';

import { Pace } from './paint';

/** Paints for a second on a screen with 60 frames per second; every picture takes so long. */
function pictures(pace: Pace, cost_ms: number, from_ms: number): number {
  let count = 0;
  for (let frame = 0; frame < 60; frame += 1) {
    const now_ms = from_ms + (frame * 1000) / 60;
    if (!pace.isDue(now_ms)) continue;
    pace.begin(now_ms);
    pace.end(now_ms + cost_ms);
    count += 1;
  }
  return count;
}

describe('Pace', () => {
  it('paints every second frame where it costs little', () => {
    expect(pictures(new Pace(), 2, 0)).toBe(30);
  });

  it('takes about three tenths of the time at most, but for the slowest machines', () => {
    for (const cost_ms of [10, 20, 40, 80]) {
      const pace = new Pace();
      const share = (pictures(pace, cost_ms, 0) * cost_ms) / 1000;
      expect(share).toBeGreaterThan(0.19);
      expect(share).toBeLessThan(0.38);
    }
    expect(pictures(new Pace(), 500, 0)).toBe(3);
  });

  it('becomes quicker when painting does', () => {
    const pace = new Pace();
    expect(pictures(pace, 60, 0)).toBeLessThan(6);
    expect(pictures(pace, 2, 1000)).toBeGreaterThan(15);
    expect(pictures(pace, 2, 2000)).toBe(30);
  });
});
