/** A comparison from the server, and how its figures and parameters are formatted. */
import type { Schemas } from '@/api/types/schemas';

export interface ComparedRun {
  id: number;
  name: string;
  world: 'simulated' | 'real';
  outcome: string;
  correct: boolean | null;
  valid: boolean | null;
  /** Why its figures cannot simply be set against the baseline's. */
  cautions: Caution[];
}

export type Caution = Schemas['Caution'];

export interface ParamRow {
  path: string;
  values: unknown[];
  differs: boolean;
}

/** `deltas` are fractions of the baseline's value. */
export interface MetricRow {
  name: string;
  title: string;
  unit: string;
  values: (number | null)[];
  deltas: (number | null)[];
  better: 'lower' | 'higher' | null;
}

export interface Comparison {
  baseline: number;
  runs: ComparedRun[];
  params: ParamRow[];
  metrics: MetricRow[];
  series: { run: number; token_s: number[] }[];
}

/** Whether a metric says something of these runs. */
export const hasValue = ({ values }: MetricRow): boolean =>
  values.some((value) => value !== null && value !== 0);

/** Whether at least two runs have a value, so that there is something to compare. */
export const isShared = ({ values }: MetricRow): boolean =>
  values.filter((value) => value !== null).length > 1;

export type Judgement = 'better' | 'worse' | 'same' | null;

const NOTHING = 0.0005;

/** Whether a difference from the baseline is an improvement; null if neither direction is, or if the two runs differ
 * in what decides the figures. */
export function judge(
  delta: number | null,
  better: MetricRow['better'],
  cautions: readonly Caution[] = [],
): Judgement {
  if (delta === null) return null;
  if (Math.abs(delta) < NOTHING) return 'same';
  if (better === null || cautions.some(({ decides }) => decides)) return null;
  return delta < 0 === (better === 'lower') ? 'better' : 'worse';
}

export function deltaText(delta: number): string {
  const size = Math.abs(delta) * 100;
  if (size >= 1000) return `${(1 + delta).toFixed(1)}×`;
  return `${size < 10 ? size.toFixed(1) : size.toFixed(0)} %`;
}

/** A caution about a run or several repeats, each once. */
export function cautionsOf(runs: readonly ComparedRun[]): Caution[] {
  const all = runs.flatMap(({ cautions }) => cautions);
  return all.filter(({ sentence }, at) => all.findIndex((one) => one.sentence === sentence) === at);
}

/** Metrics and parameters as CSV: a column per run, values in SI units. */
export function csvOf(comparison: Comparison): string {
  const head = ['kind', 'name', 'unit', ...comparison.runs.map((run) => `${run.id} ${run.name}`)];
  const metrics = comparison.metrics.map((row) => ['metric', row.name, row.unit, ...row.values]);
  const deltas = comparison.metrics.map((row) => ['delta to baseline', row.name, 'fraction', ...row.deltas]);
  const params = comparison.params.map((row) => ['parameter', row.path, '', ...row.values]);
  return csvText([head, ...metrics, ...deltas, ...params]);
}

export const csvText = (rows: readonly (readonly unknown[])[]): string =>
  rows.map((row) => row.map(cell).join(',')).join('\n') + '\n';

/** A spreadsheet takes a text for a formula that begins so. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const plain = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const text = typeof value === 'string' && FORMULA.test(plain) ? `'${plain}` : plain;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Columns of the latency chart: token number, then seconds per token of every run. */
export function latencyColumns(
  series: Comparison['series'],
  from: number,
): [number[], ...(number | null)[][]] {
  const longest = Math.max(0, ...series.map((one) => one.token_s.length));
  const x = Array.from({ length: Math.max(longest - from, 0) }, (_, index) => index + from);
  return [x, ...series.map((one) => x.map((index) => one.token_s[index] ?? null))];
}

export interface Box {
  least: number;
  lower: number;
  median: number;
  upper: number;
  most: number;
}

/** Least, quartiles and most of some values, quartiles interpolated linearly; null of none. */
export function boxOf(values: readonly number[]): Box | null {
  const sorted = values.toSorted((a, b) => a - b);
  if (sorted.length === 0) return null;
  const at = (fraction: number) => {
    const place = fraction * (sorted.length - 1);
    const below = Math.floor(place);
    const low = sorted[below]!;
    return low + (place - below) * (sorted[Math.min(below + 1, sorted.length - 1)]! - low);
  };
  return { least: at(0), lower: at(0.25), median: at(0.5), upper: at(0.75), most: at(1) };
}
