import { describe, expect, it } from 'vitest';
import { SLIDER_MAX, fromSlider, toSlider } from './rateScale';

describe('the rate slider', () => {
  it('spans 100 kbit/s to 10 Gbit/s', () => {
    expect(fromSlider(0)).toBe(1e5);
    expect(fromSlider(SLIDER_MAX)).toBe(1e10);
  });

  it('gives back every round rate', () => {
    for (const rate of [1e5, 1e6, 5e6, 2e7, 1e8, 5e8, 1e9, 1e10])
      expect(fromSlider(toSlider(rate))).toBe(rate);
  });

  it('rounds to two significant digits', () => {
    // Position 40 of 1000 on five decades is 10^5.2 = 158,489 bit/s.
    expect(fromSlider(40)).toBe(160_000);
  });

  it('holds rates outside its range at its ends', () => {
    expect(toSlider(1)).toBe(0);
    expect(toSlider(1e13)).toBe(SLIDER_MAX);
  });
});
