import { describe, expect, it } from 'vitest';
import type { Assessment, StrategyRow } from '@/api/types';
import { grouped } from './strategyRows';

const row = (name: string, is_baseline: boolean) => ({ name, is_baseline }) as StrategyRow;
const strategies = [row('single', true), row('voltage', false), row('gpipe', true), row('lime', false)];
const advice = [
  { strategy: 'single', total_s: 3 },
  { strategy: 'voltage', total_s: 4 },
  { strategy: 'gpipe', total_s: 2 },
  { strategy: 'lime', total_s: 1 },
] as Assessment[];
const names = (rows: StrategyRow[]) => rows.map(({ name }) => name);

describe('strategies in the form of a new run', () => {
  it('are the methods of the papers and the baselines, each with the best first', () => {
    const [methods, baselines] = grouped(strategies, advice, {}, 'total_s');
    expect(names(methods)).toEqual(['lime', 'voltage']);
    expect(names(baselines)).toEqual(['gpipe', 'single']);
  });

  it('keep their order until there is advice, and end with those that cannot run', () => {
    expect(grouped(strategies, undefined, {}, 'total_s').map(names)).toEqual([
      ['voltage', 'lime'],
      ['single', 'gpipe'],
    ]);
    const [methods] = grouped(strategies, advice, { lime: 'too small', voltage: null }, 'total_s');
    expect(names(methods)).toEqual(['voltage', 'lime']);
  });
});
