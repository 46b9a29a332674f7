import { describe, expect, it } from 'vitest';
import { groupsOf, statisticText } from './groups';
import { runRow as run } from './fixtures';

describe('groups of runs', () => {
  it('have a mean with its interval, a median, or extremes', () => {
    const average = { mean: 81.75, margin: 2, median: 9.5, least: 8, most: 300, count: 4 };
    const one = { mean: 5, margin: null, median: 5, least: 5, most: 5, count: 1 };
    const text = (value: number) => `${value} s`;
    expect(statisticText(average, 'mean', text)).toEqual(['81.75 s', ' ± 2 s']);
    expect(statisticText(average, 'median', text)).toEqual(['9.5 s', '']);
    expect(statisticText(average, 'extremes', text)).toEqual(['8 s – 300 s', '']);
    expect(statisticText(one, 'extremes', text)).toEqual(['5 s', '']);
    expect(statisticText(one, 'mean', text)).toEqual(['5 s', '']);
  });

  it('are runs of equal values, in the order of these', () => {
    const runs = [
      run(1, { strategy: 'gpipe', params: { new_tokens: 16 }, figures: { latency_s: 1 } }),
      run(2, { strategy: 'gpipe', params: { new_tokens: 8 }, figures: { latency_s: 4 } }),
      run(3, { strategy: 'gpipe', params: { new_tokens: 16 }, figures: { latency_s: 3 } }),
      run(4, { strategy: 'gpipe', params: { new_tokens: 16 } }),
      run(5, { strategy: 'galaxy', params: {} }),
    ];
    const groups = groupsOf(runs, ['strategy', 'params.new_tokens']);
    expect(groups.map(({ values }) => values)).toEqual([
      ['galaxy', '–'],
      ['gpipe', '8'],
      ['gpipe', '16'],
    ]);
    expect(groups[2]!.runs.map(({ id }) => id)).toEqual([1, 3, 4]);
  });
});
