import { describe, expect, it } from 'vitest';
import { byKind, cautionLines } from './cautions';
import type { Caution } from './comparison';
import { comparisonOf } from './fixtures';

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

const runsWith = (...cautions: Caution[][]) =>
  comparisonOf(
    { seed: cautions.map((_, at) => at) },
    {},
    cautions.map((own) => ({ cautions: own })),
  ).runs;

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

  it('of a group are one of each kind, with all sentences', () => {
    const ended = (how: string): Caution => ({
      kind: 'outcome',
      sentence: `This run ended as ${how}.`,
      decides: true,
    });
    const runs = runsWith([ended('failed'), BASELINE], [ended('out of memory'), BASELINE, OWN]);
    expect(byKind(runs).map(({ kind, sentence }) => [kind, sentence])).toEqual([
      ['outcome', 'This run ended as failed. This run ended as out of memory.'],
      ['baseline_fidelity', BASELINE.sentence],
      ['fidelity', OWN.sentence],
    ]);
  });
});
