/** A comparison from the server, and how its figures and parameters are formatted. */

export interface ComparedRun {
  id: number;
  name: string;
  world: 'simulated' | 'real';
  outcome: string;
  correct: boolean | null;
  valid: boolean | null;
}

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

export type Judgement = 'better' | 'worse' | 'same' | null;

const NOTHING = 0.0005;

/** Whether a difference from the baseline is an improvement; null if neither direction is. */
export function judge(delta: number | null, better: MetricRow['better']): Judgement {
  if (delta === null) return null;
  if (Math.abs(delta) < NOTHING) return 'same';
  if (better === null) return null;
  return delta < 0 === (better === 'lower') ? 'better' : 'worse';
}

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
  return [head, ...metrics, ...deltas, ...params].map((row) => row.map(cell).join(',')).join('\n') + '\n';
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
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
