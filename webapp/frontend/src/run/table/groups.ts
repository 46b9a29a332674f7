/** Runs in groups of equal values, with the mean of every figure, its 95 % confidence interval, median and extremes. */
import type { RunRow } from '@/api/types';
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

/** 0.975 quantiles of Student's t for 1, 2, … 100 degrees of freedom (NIST, table 1.3.6.7.2). */
const T = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
  2.12, 2.11, 2.101, 2.093, 2.086, 2.08, 2.074, 2.069, 2.064, 2.06, 2.056, 2.052, 2.048, 2.045, 2.042, 2.04,
  2.037, 2.035, 2.032, 2.03, 2.028, 2.026, 2.024, 2.023, 2.021, 2.02, 2.018, 2.017, 2.015, 2.014, 2.013,
  2.012, 2.011, 2.01, 2.009, 2.008, 2.007, 2.006, 2.005, 2.004, 2.003, 2.002, 2.002, 2.001, 2.0, 2.0, 1.999,
  1.998, 1.998, 1.997, 1.997, 1.996, 1.995, 1.995, 1.994, 1.994, 1.993, 1.993, 1.993, 1.992, 1.992, 1.991,
  1.991, 1.99, 1.99, 1.99, 1.989, 1.989, 1.989, 1.988, 1.988, 1.988, 1.987, 1.987, 1.987, 1.986, 1.986, 1.986,
  1.986, 1.985, 1.985, 1.985, 1.984, 1.984, 1.984,
];
/** Beyond the table its last quantile: the interval is rather too wide (1.960 would be exact of endless many). */
const T_MORE = T.at(-1)!;

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
  return { ...some, margin: (T[count - 2] ?? T_MORE) * error };
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
  const names = new Set(runs.flatMap(({ figures }) => Object.keys(figures)));
  return Object.fromEntries(
    [...names].flatMap((name) => {
      const average = averageOf(runs.flatMap(({ figures }) => figures[name] ?? []));
      return average ? [[name, average] as const] : [];
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
