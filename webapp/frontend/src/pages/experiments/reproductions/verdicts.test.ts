import { describe, expect, it } from 'vitest';
import { deviationText, shares } from './verdicts';

describe('the verdicts of a table', () => {
  it('are shown from the best to the worst, those that occur, by their share', () => {
    const found = shares({ 'does not hold': 1, 'within 10 %': 3 });
    expect(found.map(({ name, count, percent }) => [name, count, percent])).toEqual([
      ['within 10 %', 3, 75],
      ['does not hold', 1, 25],
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
