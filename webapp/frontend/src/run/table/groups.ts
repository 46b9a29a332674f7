/** Runs in groups of equal values, with the mean of every figure, its 95 % confidence interval, median and extremes. */
import type { RunRow } from '@/api/types';
import { FIGURES } from './figures';
import { valueOf } from './table';

export interface Average {
  mean: number;
  /** Half of the 95 % interval; null with fewer than two values. */
  margin: number | null;
  median: number;
  least: number;
  most: number;
  count: number;
}

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
  averages: Record<string, Average>;
}

/** 0.975 quantiles of Student's t for 1, 2, … 30 degrees of freedom; 1.96 beyond (NIST, table 1.3.6.7.2). */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042,
];

export function averageOf(values: readonly number[]): Average | null {
  const count = values.length;
  const ordered = values.toSorted((a, b) => a - b);
  const [least, most] = [ordered[0], ordered.at(-1)];
  if (least === undefined || most === undefined) return null;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const median = (ordered[(count - 1) >> 1]! + ordered[count >> 1]!) / 2;
  const some = { mean, median, least, most, count };
  if (count === 1) return { ...some, margin: null };
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const error = Math.sqrt(squares / (count - 1) / count);
  return { ...some, margin: (T[count - 2] ?? 1.96) * error };
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
  return [text(average.mean), average.margin === null ? '' : ` ± ${text(average.margin)}`];
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
  return [...found.values()]
    .toSorted((a, b) => compareTexts(a.values, b.values))
    .map((group) => ({ ...group, averages: averagesOf(group.runs) }));
}

function textOf(run: RunRow, key: string): string {
  if (key === 'tags') return run.tags.toSorted().join(', ') || '–';
  const value = valueOf(run, key);
  return value === null ? '–' : String(value);
}

function averagesOf(runs: readonly RunRow[]): Record<string, Average> {
  return Object.fromEntries(
    FIGURES.flatMap(({ key, of }) => {
      const average = averageOf(runs.map(of).filter((value) => value !== null));
      return average ? [[key, average] as const] : [];
    }),
  );
}

function compareTexts(a: readonly string[], b: readonly string[]): number {
  for (const [at, one] of a.entries()) {
    const order = one.localeCompare(b[at] ?? '', 'en', { numeric: true });
    if (order) return order;
  }
  return 0;
}
