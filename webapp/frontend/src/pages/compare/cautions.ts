/** Why runs cannot simply be set against the baseline, in the words of the page. */
import { type Caution, type ComparedRun, cautionsOf } from './comparison';
import { listed } from './figure';

export const LABELS: Record<Caution['kind'], string> = {
  outcome: 'not finished',
  fidelity: 'not valid',
  baseline_fidelity: 'baseline not valid',
  model: 'other model',
  numbers: 'other numbers',
  workload: 'other workload',
  seed: 'other seed',
  world: 'predicted and measured',
};

/** The cautions about some runs, one of each kind with all its sentences. */
export function byKind(runs: readonly ComparedRun[]): Caution[] {
  const found = new Map<Caution['kind'], Caution>();
  for (const one of cautionsOf(runs)) {
    const there = found.get(one.kind);
    found.set(one.kind, there ? { ...there, sentence: `${there.sentence} ${one.sentence}` } : one);
  }
  return [...found.values()];
}

/** A line for each kind of caution that decides, with its runs, and what follows; none if there is no such caution. */
export function cautionLines(runs: readonly ComparedRun[], baseline: number): string[] {
  const kinds = byKind(runs)
    .filter(({ decides }) => decides)
    .map(({ kind }) => kind);
  const own = kinds
    .filter((kind) => kind !== 'baseline_fidelity')
    .map((kind) => {
      const ids = runs
        .filter(({ cautions }) => cautions.some((one) => one.kind === kind))
        .map(({ id }) => id);
      return `${listed('Run', ids.map(String))}: ${LABELS[kind]}.`;
    });
  if (kinds.length > own.length)
    return [
      ...own,
      `The baseline, run ${baseline}, is not valid: no difference from it says which run is better.`,
    ];
  if (own.length === 0) return [];
  return [...own, `A difference of these from the baseline, run ${baseline}, does not say which is better.`];
}
