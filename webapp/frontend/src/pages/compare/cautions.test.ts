import { describe, expect, it } from 'vitest';
import { cautionLines, listed } from './cautions';
import type { Caution, ComparedRun } from './comparison';

const BASELINE: Caution = {
  kind: 'baseline_fidelity',
  sentence: 'The times of the baseline are not valid: see its report.',
  decides: true,
};
const OWN: Caution = {
  kind: 'fidelity',
  sentence: 'The times of this run are not valid: see its report.',
  decides: true,
};
const SEED: Caution = { kind: 'seed', sentence: 'Seed 1 here, 0 in the baseline.', decides: false };

const runsWith = (...cautions: Caution[][]): ComparedRun[] =>
  cautions.map((own, at) => ({
    id: at + 1,
    name: '',
    world: 'emulated',
    outcome: 'finished',
    correct: null,
    valid: null,
    cautions: own,
  }));

it('lists runs in a sentence', () => {
  expect(listed('run', ['3'])).toBe('run 3');
  expect(listed('run', ['3', '4', '5'])).toBe('runs 3, 4 and 5');
});

describe('the cautions of compared runs', () => {
  it('blame the baseline alone, once, where only the baseline is not valid', () => {
    expect(cautionLines(runsWith([], [BASELINE, SEED], [BASELINE]), 1)).toEqual([
      'The baseline, run 1, is not valid: no difference from it says which run is better.',
    ]);
  });

  it('name the runs that are not valid themselves beside it', () => {
    expect(cautionLines(runsWith([], [OWN, BASELINE], [BASELINE], [OWN, BASELINE]), 1)).toEqual([
      'Runs 2 and 4: not valid.',
      'The baseline, run 1, is not valid: no difference from it says which run is better.',
    ]);
  });

  it('say what follows for runs of their own kind, and nothing of seeds', () => {
    expect(cautionLines(runsWith([], [OWN], [SEED]), 1)).toEqual([
      'Run 2: not valid.',
      'A difference of these from the baseline, run 1, does not say which is better.',
    ]);
    expect(cautionLines(runsWith([], [SEED]), 1)).toEqual([]);
  });
});
