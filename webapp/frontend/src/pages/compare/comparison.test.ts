import { describe, expect, it } from 'vitest';
import { csvOf, deltaText, latencyColumns, type Comparison } from './comparison';

const comparison: Comparison = {
  baseline: 1,
  columns: [],
  has_repeats: false,
  grouped: false,
  runs: [
    {
      id: 1,
      name: 'one, "first"',
      world: 'emulated',
      outcome: 'finished',
      correct: true,
      valid: true,
      cautions: [],
    },
    { id: 2, name: 'two', world: 'emulated', outcome: 'finished', correct: true, valid: true, cautions: [] },
  ],
  params: [{ path: 'strategy', values: ['voltage', 'gpipe'], differs: true }],
  metrics: [
    {
      name: 'ttft_s',
      title: '',
      unit: 's',
      values: [2, null],
      deltas: [0, null],
      better: 'lower',
      cells: [],
    },
  ],
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
});
