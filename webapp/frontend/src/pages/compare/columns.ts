/** The columns of the table of results, a run or a group of repeats each, and what stands in their cells. */
import { type Average, averageOf } from '@/run/table/groups';
import {
  type Caution,
  type ComparedRun,
  type Comparison,
  judge,
  type Judgement,
  type MetricRow,
} from './comparison';
import { byKind } from './cautions';
import { type Repeats, telling, toldText } from './parameters';
import type { Compared } from './view';

export interface Column {
  key: string;
  runs: readonly ComparedRun[];
  places: Repeats;
  /** What tells these repeats from other groups; '' for a single run. */
  label: string;
  isBase: boolean;
  cautions: readonly Caution[];
}

export interface Cell {
  average: Average | null;
  /** The difference from the mean of the baseline, as a fraction of that. */
  delta: number | null;
  /** unclear: the intervals overlap, so that chance alone may make the difference. */
  verdict: Judgement | 'unclear';
}

/** A column per run, or per group of repeats. */
export function columnsOf({ comparison, groups, parameters }: Compared, grouped: boolean): Column[] {
  const { runs, baseline } = comparison;
  const named = grouped ? telling(comparison, groups, parameters) : [];
  const all: readonly Repeats[] = grouped ? groups : runs.map((_, at) => [at]);
  return all.map((places) => {
    const own = places.map((at) => runs[at]!);
    return {
      key: own.map(({ id }) => id).join(' '),
      runs: own,
      places,
      label: grouped ? named.map((one) => toldText(one, places[0] ?? 0)).join(' · ') || 'all runs' : '',
      isBase: own.some(({ id }) => id === baseline),
      // Repeats differ in the seed: that is what they are for.
      cautions: byKind(own).filter(({ kind }) => !grouped || kind !== 'seed'),
    };
  });
}

/** What a column has of a metric, and how it differs from the column of the baseline. */
export function cellOf(row: MetricRow, column: Column, base: Column | undefined): Cell {
  const average = averageIn(row, column.places);
  const other = base ? averageIn(row, base.places) : null;
  if (column === base || !average || !other) return { average, delta: null, verdict: null };
  const delta = deltaOf(average.mean, other.mean);
  const verdict = judge(delta, row.better, column.cautions);
  const isJudged = verdict === 'better' || verdict === 'worse';
  return { average, delta, verdict: isJudged && overlap(average, other) ? 'unclear' : verdict };
}

const averageIn = (row: MetricRow, places: Repeats) =>
  averageOf(places.map((at) => row.values[at] ?? null).filter((value) => value !== null));

/** The difference as a fraction of the baseline's value; null where that is 0 and the other is not. */
export function deltaOf(value: number, base: number): number | null {
  if (value === base) return 0;
  return base === 0 ? null : (value - base) / Math.abs(base);
}

/** Whether two 95 % intervals have a value in common; a single value is an interval only beside a real one. */
function overlap(a: Average, b: Average): boolean {
  if (a.margin === null && b.margin === null) return false;
  return Math.abs(a.mean - b.mean) <= (a.margin ?? 0) + (b.margin ?? 0);
}

/** Whether the table begins with groups: there are repeats, of more than one thing. */
export const isGroupedAtFirst = ({
  comparison,
  groups,
}: Pick<Compared, 'groups'> & { comparison: Pick<Comparison, 'runs'> }) =>
  groups.length > 1 && groups.length < comparison.runs.length;
