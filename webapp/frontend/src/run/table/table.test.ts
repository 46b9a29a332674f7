import { describe, expect, it } from 'vitest';
import type { RunRow } from '@/api/types';
import { choices, NO_FILTER, nextSort, shown, sorted } from './table';

function run(id: number, facts: Partial<RunRow> = {}): RunRow {
  return {
    id,
    name: `run ${id}`,
    status: 'finished',
    detail: '',
    starts_in_s: null,
    created_at: `2026-01-0${id}T00:00:00Z`,
    started_at: null,
    finished_at: null,
    cluster_name: 'lab-3',
    model: 'demo-lm',
    strategy: 'voltage',
    owner: 'ada',
    queue_position: null,
    locked: null,
    outcome: 'finished',
    latency_s: null,
    ttft_s: null,
    tpot_s: null,
    tokens_per_s: null,
    correct: null,
    valid: null,
    tags: [],
    ...facts,
  };
}
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
    const runs = [run(1, { latency_s: 10 }), run(2), run(3, { latency_s: 9 })];
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
});
