import { describe, expect, it } from 'vitest';
import { cellOf, columnsOf, deltaOf, isGroupedAtFirst } from './columns';
import type { Caution } from './comparison';
import { comparisonOf } from './fixtures';
import { comparedOf } from './view';

/** Three runs of each strategy; the latencies of the second are to be given. */
function tableOf(second: readonly (number | null)[], cautions: Caution[] = []) {
  const comparison = comparisonOf(
    { strategy: ['gpipe', 'gpipe', 'gpipe', 'lime', 'lime', 'lime'], seed: [0, 1, 2, 0, 1, 2] },
    { latency_s: [1, 2, 3, ...second] },
    [{}, {}, {}, { cautions }],
  );
  const columns = columnsOf(comparedOf(comparison), true);
  return { columns, cell: cellOf(comparison.metrics[0]!, columns[1]!, columns[0]) };
}

describe('the table of groups', () => {
  it('has a column per group of repeats, named by what tells it from the others', () => {
    const { columns } = tableOf([4, 5, 6]);
    expect(columns.map(({ label, isBase, runs }) => [label, isBase, runs.map(({ id }) => id)])).toEqual([
      ['gpipe', true, [1, 2, 3]],
      ['lime', false, [4, 5, 6]],
    ]);
  });

  it('sets the mean against the mean of the baseline group', () => {
    // Means 2 and 20; each ± 4.303/√3 = 2.484.
    const { cell } = tableOf([19, 20, 21]);
    expect(cell.average!.mean).toBe(20);
    expect(cell.delta).toBe(9);
    expect(cell.verdict).toBe('worse');
  });

  it('calls no difference better or worse that is within the intervals', () => {
    // Means 2 and 6, each ± 2.484: 4 is less than 4.968. Means 2 and 7: 5 is more.
    expect(tableOf([5, 6, 7]).cell.verdict).toBe('unclear');
    expect(tableOf([6, 7, 8]).cell.verdict).toBe('worse');
    expect(tableOf([2, 1, 3]).cell.verdict).toBe('same');
  });

  it('judges nothing that was asked for something else, but says nothing of seeds', () => {
    const workload: Caution = { kind: 'workload', sentence: 'Other requests.', decides: true };
    const seed: Caution = { kind: 'seed', sentence: 'Seed 1 here, 0 in the baseline.', decides: false };
    const { columns, cell } = tableOf([19, 20, 21], [workload, seed]);
    expect(cell.verdict).toBeNull();
    expect(columns[1]!.cautions).toEqual([workload]);
  });

  it('has the mean of the runs that have a value, and no difference without any', () => {
    expect(tableOf([4, null, 8]).cell.average).toMatchObject({ mean: 6, count: 2 });
    expect(tableOf([null, null, null]).cell).toEqual({ average: null, delta: null, verdict: null });
  });

  it('begins with groups only if there are several and some have repeats', () => {
    const begins = (params: Record<string, unknown[]>) => isGroupedAtFirst(comparedOf(comparisonOf(params)));
    expect(begins({ strategy: ['gpipe', 'gpipe', 'lime'], seed: [0, 1, 0] })).toBe(true);
    expect(begins({ strategy: ['gpipe', 'lime'] })).toBe(false);
    expect(begins({ seed: [0, 1, 2] })).toBe(false);
  });
});

describe('the difference from the baseline', () => {
  it('is a fraction of it, and undefined where that is nothing', () => {
    expect(deltaOf(3, 2)).toBe(0.5);
    expect(deltaOf(-1, -2)).toBe(0.5);
    expect(deltaOf(0, 0)).toBe(0);
    expect(deltaOf(1, 0)).toBeNull();
  });
});
