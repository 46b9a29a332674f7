import { describe, expect, it, vi } from 'vitest';

import { onPaint, Pace } from './paint';

/** The pictures of a second on a screen with 60 frames per second; every picture takes `cost_ms`. */
function pictures(pace: Pace, cost_ms: number, from_ms: number, reason: 'data' | 'time'): number {
  let count = 0;
  for (let frame = 0; frame < 60; frame += 1) {
    const now_ms = from_ms + (frame * 1000) / 60;
    if (!pace.isDue(now_ms, reason)) continue;
    pace.begin(now_ms);
    pace.end(now_ms, now_ms + cost_ms);
    count += 1;
  }
  return count;
}

describe('Pace', () => {
  it('paints every second frame where it costs little', () => {
    expect(pictures(new Pace(), 2, 0, 'data')).toBe(30);
    expect(pictures(new Pace(), 2, 0, 'time')).toBe(30);
  });

  it('takes about 0.6 of the time for data and 0.15 for time that passes, but for the slowest machines', () => {
    for (const [reason, cost_ms, count] of [
      ['data', 24, 20],
      ['data', 60, 10],
      ['data', 120, 5],
      ['data', 500, 3],
      ['time', 20, 8],
      ['time', 40, 4],
      ['time', 500, 3],
    ] as const)
      expect(pictures(new Pace(), cost_ms, 0, reason), `${reason} ${cost_ms}`).toBe(count);
  });

  it('becomes quicker when painting does', () => {
    const pace = new Pace();
    expect(pictures(pace, 60, 0, 'time')).toBeLessThan(4);
    expect(pictures(pace, 2, 1000, 'time')).toBeGreaterThan(4);
    expect(pictures(pace, 2, 2000, 'time')).toBeGreaterThan(20);
  });

  it('begins no picture while the last one is on its way, but for one that never got there', () => {
    const pace = new Pace();
    pace.begin(0);
    expect(pace.isDue(399, 'data')).toBe(false);
    expect(pace.isDue(400, 'data')).toBe(true);
  });

  it('counts a picture that was given up and came late for what it took, and still waits for the newer one', () => {
    const pace = new Pace();
    pace.begin(0);
    pace.end(0, 10);
    pace.begin(400);
    pace.begin(800); // 400 ms later the last one is given up
    pace.end(400, 810);
    // The costs were 10 and 410 ms: 10 + 0.3 × 400 = 130 ms, a pause of 217 ms if the newer picture were there.
    expect(pace.isDue(1_199, 'data')).toBe(false);
    pace.end(800, 1_000);
    // 130 + 0.3 × 70 = 151 ms: a pause of 252 ms.
    expect(pace.isDue(1_050, 'data')).toBe(false);
    expect(pace.isDue(1_053, 'data')).toBe(true);
  });
});

describe('onPaint', () => {
  it('paints news soon after a picture, and passing time only after the longer pause', async () => {
    const frames: (() => void)[] = [];
    vi.stubGlobal('requestAnimationFrame', (frame: () => void) => frames.push(frame));
    vi.stubGlobal('cancelAnimationFrame', () => undefined);
    const clock = vi.spyOn(performance, 'now');
    let news = false;
    const due: boolean[] = [];
    const stop = onPaint({ hasNews: () => news, paint: (frame) => (due.push(frame.due), frame.due) });
    const at = (now_ms: number) => {
      clock.mockReturnValue(now_ms);
      frames.shift()!();
      return due.at(-1);
    };
    expect(at(0)).toBe(true);
    clock.mockReturnValue(24); // the picture took so long
    await vi.waitFor(() => expect(clock.mock.calls.length).toBeGreaterThan(1), { timeout: 60_000 });
    expect(at(100)).toBe(false);
    expect(frames).toEqual([]); // nothing was painted: the next frame comes after a pause
    await vi.waitFor(() => expect(frames).toHaveLength(1), { timeout: 60_000 });
    news = true;
    expect(at(101)).toBe(true);
    stop();
    vi.unstubAllGlobals();
    clock.mockRestore();
  });
});
