import { describe, expect, it } from 'vitest';
import { BIT_RATE } from '@/format/quantities';
import { levelsText, parseLevels, spread, unitOf } from './levels';

const MEGA = BIT_RATE[1]!;
const ONE = { label: '', factor: 1 };

describe('typed values', () => {
  it('are numbers in the chosen unit, separated by commas, semicolons or spaces', () => {
    expect(parseLevels('10, 50;100  500', MEGA)).toEqual({ values: [1e7, 5e7, 1e8, 5e8], problem: null });
  });

  it.each([
    ['', ONE, 'Give at least one value.'],
    ['10, fast', MEGA, '“fast” is no number: write values like 10, 50, 100.'],
    ['0x10', ONE, '“0x10” is no number: write values like 10, 50, 100.'],
    ['1, 1.0', ONE, '1.0 is there twice.'],
    ['-1', ONE, '-1 is too small: the least is 0.'],
  ])('%j are refused in one sentence', (text, unit, problem) => {
    expect(parseLevels(text, unit).problem).toBe(problem);
  });

  it('are whole where the factor counts something', () => {
    expect(parseLevels('2.5', ONE, { whole: true }).problem).toBe('2.5 is no whole number.');
    expect(parseLevels('0', ONE, { whole: true, min: 1 }).problem).toBe('0 is too small: the least is 1.');
  });

  it('are written again as they were typed', () => {
    expect(levelsText([1e7, 2.5e7], MEGA)).toBe('10, 25');
    expect(unitOf([1e7, 1e9], BIT_RATE).label).toBe('Mbit/s');
  });
});

describe('a range', () => {
  it('goes by equal ratios or evenly, and has both ends', () => {
    expect(spread(1e6, 1e9, 4)).toEqual([1e6, 1e7, 1e8, 1e9]);
    expect(spread(0, 10, 3, { log: false })).toEqual([0, 5, 10]);
  });

  it('of counts has whole numbers, each once', () => {
    expect(spread(1, 3, 5, { log: false, whole: true })).toEqual([1, 2, 3]);
  });

  it('has one value if it has no width', () => {
    expect(spread(5, 5, 4)).toEqual([5]);
  });
});
