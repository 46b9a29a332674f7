import { describe, expect, it } from 'vitest';

import { Crowd } from './crowd';

const COLORS = ['#102030', '#ff8000'];
const pixel = (crowd: Crowd, lane: number, column: number) => {
  const at = 4 * (lane * crowd.width + column);
  return Array.from(crowd.pixels(COLORS).subarray(at, at + 4));
};

describe('Crowd', () => {
  it('makes a pixel as opaque as it is busy, from a fifth on', () => {
    const crowd = new Crowd(4, 2);
    crowd.add(1, 1, 1.25, 0);
    crowd.add(1, 1.5, 1.75, 0);
    crowd.add(1, 2, 3, 1);
    expect(pixel(crowd, 1, 1)).toEqual([0x10, 0x20, 0x30, 153]); // 255 · (0.2 + 0.8 · 0.5)
    expect(pixel(crowd, 1, 2)).toEqual([0xff, 0x80, 0x00, 255]);
    expect(pixel(crowd, 1, 0)).toEqual([0, 0, 0, 0]);
    expect(pixel(crowd, 0, 1)).toEqual([0, 0, 0, 0]);
  });

  it('divides a span among the pixels that it crosses, and cuts it at the edges', () => {
    const crowd = new Crowd(3, 1);
    crowd.add(0, 0.5, 2.25, 0);
    expect([0, 1, 2].map((column) => pixel(crowd, 0, column)[3])).toEqual([153, 255, 102]);
    crowd.add(0, 2.75, 9, 1);
    expect(pixel(crowd, 0, 2)).toEqual([0xff, 0x80, 0x00, 153]);
  });

  it('has the colour of the newest span of a pixel, and is never more than opaque', () => {
    const crowd = new Crowd(1, 1);
    crowd.add(0, 0, 0.9, 0);
    crowd.add(0, 0.2, 1, 1);
    expect(pixel(crowd, 0, 0)).toEqual([0xff, 0x80, 0x00, 255]);
  });
});
