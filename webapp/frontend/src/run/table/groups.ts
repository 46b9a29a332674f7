/** Runs in groups of equal values; the server averages their figures. */
import type { RunRow } from '@/api/types';
import type { Schemas } from '@/api/types/schemas';
import { marginText } from '@/format/metrics';
import { valueOf } from './table';

/** The average of one figure of some runs: `margin` is half of the 95 % interval of the mean; null with fewer than two values. */
export type Average = Schemas['Average'];

/** What a table of groups shows of a figure. */
export const STATISTICS = {
  mean: 'mean ± 95 % interval',
  median: 'median',
  extremes: 'least to most',
} as const;
export type Statistic = keyof typeof STATISTICS;

export interface Group {
  /** The common value of each key, as text. */
  values: string[];
  runs: readonly RunRow[];
}

/** A statistic as text, and what is said more quietly beside it. */
export function statisticText(
  average: Average,
  statistic: Statistic,
  text: (value: number) => string,
): readonly [string, string] {
  if (statistic === 'median') return [text(average.median), ''];
  if (statistic === 'extremes') {
    const [least, most] = [text(average.least), text(average.most)];
    return [least === most ? least : `${least} – ${most}`, ''];
  }
  return [text(average.mean), average.margin === null ? '' : marginText(average.margin, text)];
}

/** The groups by these keys of `valueOf` (`tags`: the tags of a run together), in the order of their values. */
export function groupsOf(runs: readonly RunRow[], keys: readonly string[]): Group[] {
  const found = new Map<string, { values: string[]; runs: RunRow[] }>();
  for (const run of runs) {
    const values = keys.map((key) => textOf(run, key));
    const id = JSON.stringify(values);
    const group = found.get(id);
    if (group) group.runs.push(run);
    else found.set(id, { values, runs: [run] });
  }
  return [...found.values()].toSorted((a, b) => compareTexts(a.values, b.values));
}

function textOf(run: RunRow, key: string): string {
  if (key === 'tags') return run.tags.toSorted().join(', ') || '–';
  const value = valueOf(run, key);
  return value === null ? '–' : String(value);
}

function compareTexts(a: readonly string[], b: readonly string[]): number {
  for (const [at, one] of a.entries()) {
    const order = one.localeCompare(b[at] ?? '', 'en', { numeric: true });
    if (order) return order;
  }
  return 0;
}
