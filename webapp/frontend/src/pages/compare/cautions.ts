/** Why runs cannot simply be set against the baseline, in the words of the page. */
import type { Caution, ComparedRun } from './comparison';

export const LABELS: Record<Caution['kind'], string> = {
  outcome: 'not finished',
  fidelity: 'not valid',
  baseline_fidelity: 'baseline not valid',
  model: 'other model',
  numbers: 'other numbers',
  workload: 'other workload',
  seed: 'other seed',
  world: 'other world',
};

/** "run 3", "runs 3, 4 and 5" */
export function listed(noun: string, ids: readonly string[]): string {
  if (ids.length === 1) return `${noun} ${ids[0]}`;
  return `${noun}s ${ids.slice(0, -1).join(', ')} and ${ids.at(-1)}`;
}

/** A line for each kind of caution that decides, with its runs, and what follows; none if there is no such caution. */
export function cautionLines(runs: readonly ComparedRun[], baseline: number): string[] {
  const all = runs.flatMap(({ cautions }) => cautions.filter(({ decides }) => decides));
  const kinds = [...new Set(all.map(({ kind }) => kind))];
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
