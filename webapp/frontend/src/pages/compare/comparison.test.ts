import { describe, expect, it } from 'vitest';
import { boxOf, csvOf, deltaText, judge, latencyColumns, type Comparison } from './comparison';

describe('judge', () => {
  it('knows which way is better', () => {
    expect(judge(-0.1, 'lower')).toBe('better');
    expect(judge(0.1, 'lower')).toBe('worse');
    expect(judge(0.1, 'higher')).toBe('better');
    expect(judge(-0.1, 'higher')).toBe('worse');
  });

  it('calls nothing better where nothing is', () => {
    expect(judge(0.3, null)).toBeNull();
    expect(judge(null, 'lower')).toBeNull();
    expect(judge(0.0001, 'lower')).toBe('same');
  });
});

const comparison: Comparison = {
  baseline: 1,
  runs: [
    {
      id: 1,
      name: 'one, "first"',
      world: 'real',
      outcome: 'finished',
      correct: true,
      valid: true,
      cautions: [],
    },
    { id: 2, name: 'two', world: 'real', outcome: 'finished', correct: true, valid: true, cautions: [] },
  ],
  params: [{ path: 'strategy', values: ['voltage', 'gpipe'], differs: true }],
  metrics: [{ name: 'ttft_s', title: '', unit: 's', values: [2, null], deltas: [0, null], better: 'lower' }],
  series: [
    { run: 0, token_s: [3, 1, 1] },
    { run: 1, token_s: [2, 0.5] },
  ],
};

describe('deltaText', () => {
  it('turns large differences into multiples', () => {
    expect(deltaText(-0.123)).toBe('12 %');
    expect(deltaText(0.0123)).toBe('1.2 %');
    expect(deltaText(17)).toBe('18.0×');
  });
});

describe('csvOf', () => {
  it('writes one line per row and quotes what needs it', () => {
    expect(csvOf(comparison).split('\n')).toEqual([
      'kind,name,unit,"1 one, ""first""",2 two',
      'metric,ttft_s,s,2,',
      'delta to baseline,ttft_s,fraction,0,',
      'parameter,strategy,,voltage,gpipe',
      '',
    ]);
  });
});

describe('latencyColumns', () => {
  it('leaves gaps where a run has fewer tokens', () => {
    expect(latencyColumns(comparison.series, 0)).toEqual([
      [0, 1, 2],
      [3, 1, 1],
      [2, 0.5, null],
    ]);
    expect(latencyColumns(comparison.series, 1)).toEqual([
      [1, 2],
      [1, 1],
      [0.5, null],
    ]);
  });

  it('calls no run better or worse that was asked for something else', () => {
    const workload = { kind: 'workload' as const, sentence: '48 new tokens here, 64 there.', decides: true };
    const seed = { kind: 'seed' as const, sentence: 'Seed 1 here, 0 there.', decides: false };
    expect(judge(-0.58, 'lower', [workload])).toBeNull();
    expect(judge(-0.58, 'lower', [seed])).toBe('better');
    expect(judge(0, 'lower', [workload])).toBe('same');
  });

  it('has boxes of quartiles', () => {
    expect(boxOf([4, 1, 3, 2, 5])).toEqual({ least: 1, lower: 2, median: 3, upper: 4, most: 5 });
    expect(boxOf([1, 2])).toEqual({ least: 1, lower: 1.25, median: 1.5, upper: 1.75, most: 2 });
    expect(boxOf([])).toBeNull();
  });
});
