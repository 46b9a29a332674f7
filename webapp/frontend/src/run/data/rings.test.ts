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
