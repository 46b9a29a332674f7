import { describe, expect, it } from 'vitest';
import { deviationText, shares } from './verdicts';

describe('the states of a table', () => {
  it('are shown from the best to the worst, those that occur, by their share', () => {
    const found = shares({ contradicted: 1, confirmed: 3 });
    expect(found.map(({ name, count, percent }) => [name, count, percent])).toEqual([
      ['confirmed', 3, 75],
      ['contradicted', 1, 25],
    ]);
  });

  it('are none where nothing is known', () => {
    expect(shares({})).toEqual([]);
  });
});

describe('a deviation', () => {
  it('is written in whole percent with its sign, and not at all where no number is published', () => {
    expect([0.123, -0.4, 0.004, -0.004, null].map(deviationText)).toEqual([
      '+12 %',
      '−40 %',
      '0 %',
      '0 %',
      '',
    ]);
  });
});
