import { describe, expect, it } from 'vitest';
import type { BestAnswer, PointAnswer, PreviewAnswer, RowAnswer } from './answers';
import { bestDigests, emulationTime } from './choose';
import { labelOf } from './design';
import type { Factor } from './types';

const factors: Factor[] = [
  {
    name: 'strategy',
    title: 'Strategy',
    unit: '',
    paths: ['strategy'],
    values: [{ value: 'single', label: 'One device' }, { value: 'voltage' }],
  },
  { name: 'rate', title: 'Rate', unit: 'bit/s', paths: [], values: [{ value: 1e6 }, { value: 2e6 }] },
];

function row(strategy: string, rate: number, seed: number): RowAnswer {
  const coordinates = { strategy, rate };
  return {
    index: 0,
    world: 'predicted',
    state: 'done',
    coordinates,
    seed,
    digest: `${strategy}-${rate}-${seed}`,
  } as unknown as RowAnswer;
}

const best = (rate: number, level: BestAnswer['level'], ...alike: string[]): BestAnswer => ({
  coordinates: { rate, world: 'predicted' },
  of: 'strategy',
  level,
  winners: [labelOf(factors, 'strategy', level), ...alike],
  distinguishable: alike.length === 0,
  mean: 1,
  low: 1,
  high: 1,
  same: [],
  alone: '',
  next: '',
  next_mean: null,
  told: '',
});

describe('the best of each place', () => {
  it('is every seed of its first winner, found by its coordinate', () => {
    const rows = [1e6, 2e6].flatMap((rate) =>
      ['single', 'voltage'].flatMap((strategy) => [row(strategy, rate, 0), row(strategy, rate, 1)]),
    );
    expect(bestDigests([best(1e6, 'single', 'voltage'), best(2e6, 'voltage')], rows)).toEqual([
      'single-1000000-0',
      'single-1000000-1',
      'voltage-2000000-0',
      'voltage-2000000-1',
    ]);
  });

  it('is found also where numbers with a unit compete', () => {
    const rows = [0, 1e6, 2e12].map((rate) => row('single', rate, 0));
    const fastest = { ...best(0, 2e12), coordinates: { strategy: 'single' }, of: 'rate' };
    expect(bestDigests([fastest], rows)).toEqual(['single-2000000000000-0']);
    expect(bestDigests([{ ...fastest, level: 0 }], rows)).toEqual(['single-0-0']);
    expect(labelOf(factors, 'rate', 1.2345678e6)).toBe('1.23457 Mbit/s');
    expect(labelOf(factors, 'strategy', 'single')).toBe('One device');
  });

  it('leaves out a point that cannot be run, which has no digest', () => {
    expect(bestDigests([best(1e6, 'voltage')], [{ ...row('voltage', 1e6, 0), digest: '' }])).toEqual([]);
  });
});

describe('the time of an emulation', () => {
  const point = (digest: string, emulate_s: number | null): PointAnswer => ({
    index: 0,
    coordinates: {},
    seed: 0,
    digest,
    problem: '',
    emulate_s,
  });
  const preview = { points: [point('a', 10), point('b', 20), point('c', null)] } as PreviewAnswer;

  it('is the sum over the chosen points, those without a prediction counted as the mean of the others', () => {
    expect(emulationTime(preview, ['a', 'b'])).toBe(30);
    expect(emulationTime(preview, ['a', 'c'])).toBe(20);
    expect(emulationTime(preview, ['c'])).toBeNull();
  });
});
