/** Comparisons for tests: runs as columns of parameters and metrics. */
import type { ComparedRun, Comparison } from './comparison';

/** `params` and `metrics`: a value per run under each name; the runs are 1, 2, 3, …, the first the baseline. */
export function comparisonOf(
  params: Readonly<Record<string, readonly unknown[]>>,
  metrics: Readonly<Record<string, readonly (number | null)[]>> = {},
  runs: readonly Partial<ComparedRun>[] = [],
): Comparison {
  const count = Math.max(
    ...[...Object.values(params), ...Object.values(metrics)].map(({ length }) => length),
  );
  return {
    baseline: 1,
    runs: Array.from({ length: count }, (_, at) => ({
      id: at + 1,
      name: `run ${at + 1}`,
      world: 'simulated',
      outcome: 'finished',
      correct: null,
      valid: null,
      cautions: [],
      ...runs[at],
    })),
    params: Object.entries(params).map(([path, values]) => ({
      path,
      values: [...values],
      differs: values.some((value) => value !== values[0]),
    })),
    metrics: Object.entries(metrics).map(([name, values]) => ({
      name,
      title: name,
      unit: 's',
      values: [...values],
      deltas: values.map(() => null),
      better: 'lower',
    })),
    series: [],
  };
}

/** Two strategies at two rates of both links, with two seeds each, but the last only once. */
export const SWEEP = comparisonOf(
  {
    strategy: ['voltage', 'voltage', 'voltage', 'voltage', 'gpipe', 'gpipe', 'gpipe'],
    'cluster.links[a--hub].bit_per_s': [1e7, 1e7, 1e8, 1e8, 1e7, 1e7, 1e8],
    'cluster.links[b--hub].bit_per_s': [1e7, 1e7, 1e8, 1e8, 1e7, 1e7, 1e8],
    'workload.new_tokens': [8, 8, 8, 8, 8, 8, 8],
    seed: [0, 1, 0, 1, 0, 1, 0],
  },
  { latency_s: [1, 3, 2, 2, 5, null, 4] },
);
