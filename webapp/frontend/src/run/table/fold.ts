/** Runs of an experiment as one row of a list: an emulated experiment has more points than people have runs. */
import type { RunRow } from '@/api/types';
import { grouped } from '@/format/groups';

/** A row of the list: a run, or all runs of an experiment that are in it, shown or not. */
export type Item =
  | { kind: 'run'; run: RunRow; isPoint: boolean }
  | { kind: 'points'; id: number; title: string; runs: readonly RunRow[] };

/** The runs in their order; those of one experiment are one row at the place of their first, and follow it where
 *  that is `open`. One run alone stands for itself. */
export function folded(runs: readonly RunRow[], open: ReadonlySet<number>): Item[] {
  const points = grouped(runs, ({ experiment }) => experiment?.id);
  const told = new Set<number>();
  return runs.flatMap((run): Item[] => {
    const { experiment } = run;
    const together = experiment ? (points.get(experiment.id) ?? []) : [];
    if (!experiment || together.length < 2) return [{ kind: 'run', run, isPoint: false }];
    if (told.has(experiment.id)) return [];
    told.add(experiment.id);
    const head: Item = { kind: 'points', ...experiment, runs: together };
    if (!open.has(experiment.id)) return [head];
    return [head, ...together.map((each): Item => ({ kind: 'run', run: each, isPoint: true }))];
  });
}
