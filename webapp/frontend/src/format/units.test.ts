import { describe, expect, it } from 'vitest';
import {
  ago,
  between,
  bytes,
  duration,
  human,
  joules,
  maybe,
  rate,
  seconds,
  signedPercent,
  three,
} from './units';

describe('numbers for people', () => {
  it('have three significant digits', () => {
    expect(three(1234.5)).toBe('1230');
    expect(three(0.012345)).toBe('0.0123');
    expect(three(0)).toBe('0');
    expect(three(NaN)).toBe('–');
  });

  it('carry a decimal prefix, also where rounding reaches the next one', () => {
    expect(rate(100e6)).toBe('100 Mbit/s');
    expect(bytes(999_900)).toBe('1 MB');
    expect(human(12, 'B')).toBe('12 B');
  });

  it('show times in the unit that suits them', () => {
    expect(seconds(0)).toBe('0 s');
    expect(seconds(2.345)).toBe('2.35 s');
    expect(seconds(0.00123)).toBe('1.23 ms');
    expect(seconds(45e-6)).toBe('45 µs');
  });

  it('show differences with a sign, and none where nothing is left of them', () => {
    expect([0.05, -0.0031, -3.5e-12, 0].map(signedPercent)).toEqual(['+5.0 %', '−0.3 %', '0.0 %', '0.0 %']);
  });

  it('show a dash for what is missing', () => {
    expect(maybe(null, seconds)).toBe('–');
    expect(maybe(0, seconds)).toBe('0 s');
  });

  it('tell how long ago something was', () => {
    const now = Date.parse('2026-01-02T12:00:00Z');
    expect(ago('2026-01-02T11:59:59Z', now)).toBe('just now');
    expect(ago('2026-01-02T11:59:00Z', now)).toBe('1 minute ago');
    expect(ago('2026-01-02T09:30:00Z', now)).toBe('2 hours ago');
    expect(ago('2025-12-30T12:00:00Z', now)).toBe('3 days ago');
  });

  it('writes small energies in their own unit', () => {
    expect([joules(0), joules(0.000196), joules(0.0123), joules(42.1), joules(1.5e4)]).toEqual([
      '0 J',
      '196 µJ',
      '12.3 mJ',
      '42.1 J',
      '15 kJ',
    ]);
  });
});

describe('a range', () => {
  it('is one number where both ends read the same', () => {
    expect([between(0.002, 0.003, seconds), between(0.63999, 0.64001, (value) => value.toFixed(2))]).toEqual([
      '2 ms to 3 ms',
      '0.64',
    ]);
  });
});

describe('a duration', () => {
  it('has the unit in which a person waits', () => {
    expect([0.42, 3, 12.3, 360, 9000, 360000].map(duration)).toEqual([
      '0.4 s',
      '3 s',
      '12 s',
      '6 min',
      '2.5 h',
      '100 h',
    ]);
  });
});
