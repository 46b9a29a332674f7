import { describe, expect, it } from 'vitest';
import { BIT_RATE, FLOP_RATE, PERCENT, SIZE, TIME, fromSI, toSI, unitFor } from './quantities';

describe('quantities', () => {
  it('shows a value in the largest unit that keeps it at one or more', () => {
    expect(unitFor(100e6, BIT_RATE).label).toBe('Mbit/s');
    expect(unitFor(1e9, BIT_RATE).label).toBe('Gbit/s');
    expect(unitFor(0.2e-3, TIME).label).toBe('µs');
    expect(unitFor(1e-3, TIME).label).toBe('ms');
    expect(unitFor(2.5, TIME).label).toBe('s');
    expect(unitFor(512e6, SIZE).label).toBe('MB');
    expect(unitFor(1.28e12, FLOP_RATE).label).toBe('TFLOP/s');
  });

  it('shows zero and tiny values too', () => {
    expect(unitFor(0, TIME).label).toBe('ms');
    expect(unitFor(1, BIT_RATE).label).toBe('kbit/s');
  });

  it('comes back to the same SI value from every unit', () => {
    const values = [1, 3, 0.1, 7e-7, 2097152, 0.0001, 123456.789, 89e9, 2.77e9];
    for (const quantity of [BIT_RATE, TIME, SIZE, FLOP_RATE, PERCENT]) {
      for (const unit of quantity) {
        for (const value of values) expect(toSI(fromSI(value, unit), unit)).toBeCloseTo(value, 12);
      }
    }
  });

  it('leaves no floating-point dust in what a person reads or stores', () => {
    expect(fromSI(0.0003, TIME[1]!)).toBe(0.3);
    expect(toSI(0.3, TIME[1]!)).toBe(0.0003);
    expect(toSI(0.07, PERCENT[0])).toBe(0.0007);
    expect(fromSI(0.29, PERCENT[0])).toBe(29);
  });
});
