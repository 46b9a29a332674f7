/** A comparison from the server, and how its figures and parameters are formatted. */
import type { Schemas } from '@/api/types/schemas';

export type Comparison = Schemas['ComparisonOut'];
export type ComparedRun = Schemas['ComparedRun'];
/** A column of the table: a run, or a group of repeats by their places among the runs. */
export type Column = Schemas['ComparedColumn'];
/** Why a run's figures cannot simply be set against the baseline's. */
export type Caution = Schemas['Caution'];
export type MetricRow = Schemas['MetricRow'];

/** Whether a metric says something of these runs. */
export const hasValue = ({ values }: MetricRow): boolean =>
  values.some((value) => value !== null && value !== 0);

/** Whether at least two runs have a value, so that there is something to compare. */
export const isShared = ({ values }: MetricRow): boolean =>
  values.filter((value) => value !== null).length > 1;

export function deltaText(delta: number): string {
  const size = Math.abs(delta) * 100;
  if (size >= 1000) return `${(1 + delta).toFixed(1)}×`;
  return `${size < 10 ? size.toFixed(1) : size.toFixed(0)} %`;
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
