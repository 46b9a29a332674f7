import { describe, expect, it } from 'vitest';
import { span } from './fixtures';
import { Names, Ring, SpanRing } from './rings';

describe('SpanRing', () => {
  it('reads back every field of a span', () => {
    const ring = new SpanRing(new Names(), 8);
    const fields = { kind: 'send', name: 'hidden', layer: 3, start_s: 1.25, end_s: 1.5 } as const;
    const counts = { bytes: 640, payload_bytes: 512, flops: 7e9, peer: 'b', request: 2, token: 9 };
    ring.push(span({ ...fields, ...counts, message: 3 }));
    expect(ring.view(0)).toEqual({ ...fields, ...counts, message: 3 });
    expect([ring.startAt(0), ring.endAt(0), ring.kindAt(0)]).toEqual([1.25, 1.5, 'send']);
  });

  it('keeps the order of its spans over every growth and every overwrite', () => {
    // 256 entries at first, 512 after one growth, 600 at most: pushed 1500, so 900 are gone.
    const ring = new SpanRing(new Names(), 600);
    const seen: number[] = [];
    for (let n = 0; n < 1500; n += 1) {
      ring.push(span({ start_s: n, end_s: n + 0.5, name: `op${n % 7}` }));
      seen.push(n);
      if (n % 97 !== 0) continue;
      const kept = seen.slice(-600);
      expect(Array.from({ length: ring.length }, (_, at) => ring.startAt(at))).toEqual(kept);
      expect(ring.dropped).toBe(seen.length - kept.length);
    }
    expect(ring.view(599).name).toBe(`op${1499 % 7}`);
  });

  it('keeps no more spans than its cap, however small', () => {
    const ring = new SpanRing(new Names(), 2);
    for (const start_s of [1, 2, 3]) ring.push(span({ start_s, end_s: start_s + 1 }));
    expect([ring.length, ring.dropped, ring.startAt(0), ring.startAt(1)]).toEqual([2, 1, 2, 3]);
  });
});

describe('times in a SpanRing', () => {
  /** Spans of a second each, which end at these times. */
  const endingAt = (...ends_s: number[]) => {
    const ring = new SpanRing(new Names(), 64);
    for (const end_s of ends_s) ring.push(span({ start_s: end_s - 1, end_s }));
    return ring;
  };

  it('finds the first span that ends after a time', () => {
    const ring = endingAt(1, 2, 3);
    expect([0, 1, 1.5, 2.5, 3].map((time_s) => ring.firstEndingAfter(time_s))).toEqual([0, 1, 1, 2, 3]);
    expect(endingAt().firstEndingAfter(0)).toBe(0);
  });

  it('finds a span that arrived before twenty which ended earlier', () => {
    const earlier = Array.from({ length: 20 }, (_, n) => n + 1);
    const ring = endingAt(30, ...earlier, 31);
    expect(ring.firstEndingAfter(25)).toBe(0);
    expect(ring.covering(29.5)).toBe(0);
    expect(endingAt(0.5, 30, 29, ...earlier, 31).firstEndingAfter(25)).toBe(1);
  });

  it('covers a time from the start of a span up to its end, and no time between spans', () => {
    const ring = endingAt(1, 3);
    expect([0, 0.5, 1, 1.5, 2, 3].map((time_s) => ring.covering(time_s))).toEqual([0, 0, -1, -1, 1, -1]);
    expect(endingAt(30, 1).covering(1)).toBe(-1);
  });

  it('shows of a past time the spans that had ended then', () => {
    const past = endingAt(1, 2, 3).until(2);
    expect([past.length, past.endAt(past.length - 1)]).toEqual([2, 2]);
  });
});

describe('Names', () => {
  it('gives one number per name', () => {
    const names = new Names();
    expect([names.id('x'), names.id('y'), names.id('x')]).toEqual([0, 1, 0]);
    expect([names.name(0), names.name(1), names.name(2)]).toEqual(['x', 'y', '']);
  });
});

describe('Ring', () => {
  it('keeps the newest items in order', () => {
    const ring = new Ring<number>(3);
    for (const n of [1, 2, 3, 4, 5]) ring.push(n);
    expect(ring.toArray()).toEqual([3, 4, 5]);
    expect([ring.at(0), ring.at(2), ring.last(), ring.length, ring.dropped]).toEqual([3, 5, 5, 3, 2]);
  });

  it('is empty at first', () => {
    const ring = new Ring<number>(3);
    expect([ring.last(), ring.toArray()]).toEqual([undefined, []]);
  });
});
