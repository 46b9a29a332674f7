import { expect, test } from 'vitest';
import type { Assessment } from '@/api/types';
import { barOf, figureOf, goalOf, rankedBy } from './objectives';

const row = (strategy: string, total: number | null, rate: number | null = null): Assessment => ({
  strategy,
  lossless: true,
  reason: '',
  total_s: total,
  tokens_per_s: rate,
  first_token_s: null,
  per_token_s: null,
  peak_memory_bytes: null,
  peak_bytes: [],
  link_bytes: null,
  peak_memory_frac: null,
  fullest: '',
  energy_j: null,
  best_planner_s: null,
  limit: null,
  devices: [],
  simulated_tokens: 0,
  basis: '',
  fast: {},
  slow: {},
  like: '',
});
const names = (rows: Assessment[]) => rows.map((each) => each.strategy);

test('the least time is first, and what has no plan is last', () => {
  const rows = [row('none', null), row('slow', 3), row('nothing', null), row('fast', 1)];
  expect(names(rankedBy(rows, 'total_s'))).toEqual(['fast', 'slow', 'none', 'nothing']);
});

test('most tokens per second are first', () => {
  expect(names(rankedBy([row('few', 1, 2), row('many', 1, 9)], 'tokens_per_s'))).toEqual(['many', 'few']);
});

test('a bar is as long as its figure against the largest', () => {
  const rows = [row('a', 1), row('b', 4), row('c', null)];
  expect(rows.map((each) => barOf(each, rows, 'total_s'))).toEqual([0.25, 1, 0]);
  expect(barOf(rows[2]!, [rows[2]!], 'total_s')).toBe(0);
});

test('figures are shown in the unit of their goal', () => {
  expect(goalOf('total_s').text(0.0123)).toBe('12.3 ms');
  expect(goalOf('peak_memory_bytes').text(2e6)).toBe('2 MB');
  expect(figureOf(row('a', 2), 'energy_j')).toBe(null);
});
