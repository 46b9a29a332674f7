import { describe, expect, it } from 'vitest';
import type { RunRow } from '@/api/types';
import { runRow as run } from './fixtures';
import { choices, NO_FILTER, nextSort, shown, sorted } from './table';
import { completed, withView } from './views';

const ids = (runs: RunRow[]) => runs.map((row) => row.id);

describe('the table of runs', () => {
  it('shows rows that have every word of the search somewhere', () => {
    const runs = [run(1, { tags: ['paper'] }), run(2, { model: 'gpt2' }), run(3, { strategy: 'megatron' })];
    expect(ids(shown(runs, { ...NO_FILTER, text: 'PAPER demo' }))).toEqual([1]);
    expect(ids(shown(runs, { ...NO_FILTER, text: '#2' }))).toEqual([2]);
    expect(ids(shown(runs, NO_FILTER))).toEqual([1, 2, 3]);
  });

  it('combines filters, and takes every step on the way as running', () => {
    const runs = [run(1, { status: 'loading' }), run(2, { status: 'running', model: 'gpt2' }), run(3)];
    expect(ids(shown(runs, { ...NO_FILTER, status: 'running' }))).toEqual([1, 2]);
    expect(ids(shown(runs, { ...NO_FILTER, status: 'running', model: 'gpt2' }))).toEqual([2]);
  });

  it('sorts numbers as numbers, with missing ones last in both directions', () => {
    const runs = [run(1, { figures: { latency_s: 10 } }), run(2), run(3, { figures: { latency_s: 9 } })];
    expect(ids(sorted(runs, { key: 'latency_s', descending: false }))).toEqual([3, 1, 2]);
    expect(ids(sorted(runs, { key: 'latency_s', descending: true }))).toEqual([1, 3, 2]);
  });

  it('sorts names with numbers in them as people count', () => {
    const runs = [run(1, { cluster_name: 'lab-10' }), run(2, { cluster_name: 'lab-9' })];
    expect(ids(sorted(runs, { key: 'cluster_name', descending: false }))).toEqual([2, 1]);
  });

  it('turns the direction when the same column is pressed again', () => {
    expect(nextSort({ key: 'id', descending: true }, 'id')).toEqual({ key: 'id', descending: false });
    expect(nextSort({ key: 'id', descending: true }, 'latency_s')).toEqual({
      key: 'latency_s',
      descending: false,
    });
  });

  it('offers every value once', () => {
    expect(choices([run(1, { tags: ['b', 'a'] }), run(2, { tags: ['a'] })], (row) => row.tags)).toEqual([
      'a',
      'b',
    ]);
  });

  it('keeps runs whose figures and parameters are within every range, and none without the figure', () => {
    const runs = [
      run(1, { figures: { latency_s: 1, link_bytes: 10 }, params: { seed: 4 } }),
      run(2, { figures: { latency_s: 2, link_bytes: 20 }, params: { seed: 4 } }),
      run(3, { figures: { latency_s: 2 } }),
    ];
    const within = (...ranges: { key: string; min: number | null; max: number | null }[]) =>
      ids(shown(runs, { ...NO_FILTER, ranges }));
    expect(within({ key: 'latency_s', min: 2, max: null })).toEqual([2, 3]);
    expect(within({ key: 'link_bytes', min: null, max: 20 })).toEqual([1, 2]);
    expect(within({ key: 'link_bytes', min: 20, max: null }, { key: 'params.seed', min: 4, max: 4 })).toEqual(
      [2],
    );
    expect(within({ key: 'link_bytes', min: null, max: null })).toEqual([1, 2, 3]);
  });

  it('tells correct, lossy and valid runs apart', () => {
    const runs = [
      run(1, { correct: true, lossy: false, valid: true }),
      run(2, { correct: null, lossy: true, valid: false }),
      run(3),
    ];
    const having = (verdict: 'correct' | 'lossy' | 'not valid' | 'wrong') =>
      ids(shown(runs, { ...NO_FILTER, verdict }));
    expect(having('correct')).toEqual([1]);
    expect(having('lossy')).toEqual([2]);
    expect(having('not valid')).toEqual([2]);
    expect(having('wrong')).toEqual([]);
  });

  it('sorts by figures and parameters', () => {
    const runs = [run(1, { figures: { dilation: 8 } }), run(2, { figures: { dilation: 32 } }), run(3)];
    expect(ids(sorted(runs, { key: 'dilation', descending: true }))).toEqual([2, 1, 3]);
    const params = [run(1, { params: { mode: 'b' } }), run(2, { params: { mode: 'a' } })];
    expect(ids(sorted(params, { key: 'params.mode', descending: false }))).toEqual([2, 1]);
  });

  it('replaces a saved view of the same name, and completes an old one', () => {
    const view = {
      name: 'mine',
      filter: NO_FILTER,
      sort: { key: 'id', descending: true },
      columns: [],
      groupBy: [],
    };
    const other = { ...view, name: 'other' };
    expect(withView([view, other], { ...view, groupBy: ['model'] })).toEqual([
      { ...view, groupBy: ['model'] },
      other,
    ]);
    expect(withView([view], other)).toEqual([view, other]);
    const old = Object.fromEntries(Object.entries(NO_FILTER).filter(([key]) => key !== 'ranges'));
    expect(completed({ ...view, filter: old as unknown as typeof NO_FILTER })).toEqual(view);
  });
});
