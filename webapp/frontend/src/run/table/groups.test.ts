import { describe, expect, it } from 'vitest';
import { averageOf, groupsOf, statisticText } from './groups';
import { runRow as run } from './fixtures';

describe('groups of runs', () => {
  it('have the mean and the 95 % interval of repeats', () => {
    // 1, 2, 3: mean 2, standard deviation 1, standard error 1/√3, t(2) = 4.303.
    const average = averageOf([1, 2, 3])!;
    expect(average.mean).toBe(2);
    expect(average.margin).toBeCloseTo(4.303 / Math.sqrt(3), 3);
  });

  it('have no interval of one value, and a narrow one of many', () => {
    expect(averageOf([])).toBeNull();
    expect(averageOf([5])).toEqual({ mean: 5, margin: null, median: 5, least: 5, most: 5, count: 1 });
    // n values, 0 and 2 in turn: standard deviation √(n/(n-1)), standard error 1/√(n-1). Quantiles of NIST's table.
    const marginOf = (count: number) =>
      averageOf(Array.from({ length: count }, (_, at) => (at % 2) * 2))!.margin! * Math.sqrt(count - 1);
    expect(marginOf(32)).toBeCloseTo(2.04, 6);
    expect(marginOf(40)).toBeCloseTo(2.023, 6);
    expect(marginOf(50)).toBeCloseTo(2.01, 6);
    expect(marginOf(102)).toBeCloseTo(1.984, 6);
  });

  it('have a median and extremes, which one value far away leaves or shows', () => {
    const average = averageOf([10, 9, 300, 8])!; // in order 8, 9, 10, 300
    expect([average.median, average.least, average.most]).toEqual([9.5, 8, 300]);
    const text = (value: number) => `${value} s`;
    expect(statisticText(average, 'median', text)).toEqual(['9.5 s', '']);
    expect(statisticText(average, 'extremes', text)).toEqual(['8 s – 300 s', '']);
    expect(statisticText(averageOf([5])!, 'extremes', text)).toEqual(['5 s', '']);
    expect(statisticText(averageOf([5])!, 'mean', text)).toEqual(['5 s', '']);
    expect(statisticText(averageOf([2, 2])!, 'mean', text)).toEqual(['2 s', ' ± 0 s']);
  });

  it('are runs of equal values, in the order of these, without those that lack a figure in its mean', () => {
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
    expect(groups[2]!.averages['latency_s']).toMatchObject({ mean: 2, count: 2 });
    expect(groups[0]!.averages['latency_s']).toBeUndefined();
  });
});
