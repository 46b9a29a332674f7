import { describe, expect, it } from 'vitest';
import type { PointAnswer, PreviewAnswer, RowAnswer } from './answers';
import { bestDigests, emulationTime } from './choose';
import type { ExperimentDocument, FigureSpec } from './types';

const figure = { metric: 'total_s', series: 'strategy', x: 'rate' } as FigureSpec;
const experiment = { figures: [figure] } as ExperimentDocument;

function row(
  strategy: string,
  rate: number,
  seed: number,
  total_s: number,
  more: Partial<RowAnswer> = {},
): RowAnswer {
  return {
    index: 0,
    world: 'simulated',
    state: 'done',
    coordinates: { strategy, rate },
    seed,
    digest: `${strategy}-${rate}-${seed}`,
    outcome: 'finished',
    reason: '',
    metrics: { total_s },
    run_id: null,
    wall_s: null,
    code_version: '1',
    calibration: '',
    stale: false,
    ...more,
  };
}

// By the mean of both seeds, a wins at 1 (2 against 2.5), although b has the best single value; b wins at 2.
const rows = [
  row('a', 1, 0, 2),
  row('a', 1, 1, 2),
  row('b', 1, 0, 1),
  row('b', 1, 1, 4),
  row('a', 2, 0, 3),
  row('b', 2, 0, 1),
];

describe('the best of each cell', () => {
  it('is all repeats of the level with the best mean', () => {
    expect(bestDigests(experiment, { rows }, 'lower')).toEqual(['a-1-0', 'a-1-1', 'b-2-0']);
    expect(bestDigests(experiment, { rows }, 'higher')).toEqual(['b-1-0', 'b-1-1', 'a-2-0']);
  });

  it('is chosen among predictions that have a value', () => {
    const failed = [
      row('a', 1, 0, 0, { state: 'failed' }),
      row('b', 1, 0, 0, { world: 'emulated' }),
      row('a', 1, 1, 5),
    ];
    expect(bestDigests(experiment, { rows: failed }, 'lower')).toEqual(['a-1-1']);
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
