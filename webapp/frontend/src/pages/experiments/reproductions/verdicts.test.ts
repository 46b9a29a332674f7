import { describe, expect, it } from 'vitest';
import { shares } from './verdicts';

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
