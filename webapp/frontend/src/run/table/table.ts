/** Filters and sorts the list of runs. */
import { isOver, type RunRow } from '@/api/types';

/** A figure or a numeric parameter from `min` to `max`, both included; null: no bound. */
export interface Range {
  key: string;
  min: number | null;
  max: number | null;
}

export type Verdict = 'correct' | 'wrong' | 'lossy' | 'valid' | 'not valid';

export interface Filter {
  text: string;
  status: string | null;
  cluster: string | null;
  model: string | null;
  strategy: string | null;
  tag: string | null;
  verdict: Verdict | null;
  ranges: readonly Range[];
}

export const NO_FILTER: Filter = {
  text: '',
  status: null,
  cluster: null,
  model: null,
  strategy: null,
  tag: null,
  verdict: null,
  ranges: [],
};

export interface Sort {
  /** As `valueOf` reads it. */
  key: string;
  descending: boolean;
}

const TEXTS = ['name', 'status', 'cluster_name', 'model', 'strategy', 'owner', 'created_at'] as const;

/** What a column of this key shows, for sorting, limits and groups; null where the run has nothing there. */
export function valueOf(run: RunRow, key: string): string | number | null {
  if (key === 'id') return run.id;
  const text = TEXTS.find((name) => name === key);
  if (text) return run[text];
  if (key.startsWith('params.')) {
    const value = run.params[key.slice('params.'.length)];
    if (value === undefined || value === null) return null;
    return typeof value === 'number' || typeof value === 'string' ? value : JSON.stringify(value);
  }
  return run.figures[key] ?? null;
}

/** The verdicts of a run; none while it is not over. */
export function verdictsOf({ correct, lossy, valid }: RunRow): Verdict[] {
  const found: Verdict[] = [];
  if (correct !== null) found.push(correct ? 'correct' : 'wrong');
  else if (lossy) found.push('lossy');
  if (valid !== null) found.push(valid ? 'valid' : 'not valid');
  return found;
}

function isWithin(run: RunRow, { key, min, max }: Range): boolean {
  if (min === null && max === null) return true;
  const value = valueOf(run, key);
  return typeof value === 'number' && (min === null || value >= min) && (max === null || value <= max);
}

export function shown(runs: readonly RunRow[], filter: Filter): RunRow[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  return runs.filter((run) => {
    const text = [
      `#${run.id}`,
      run.name,
      run.status,
      run.cluster_name,
      run.model,
      run.strategy,
      run.owner,
      ...run.tags,
    ]
      .join(' ')
      .toLowerCase();
    return (
      words.every((word) => text.includes(word)) &&
      (filter.status === null || statusGroup(run) === filter.status) &&
      (filter.cluster === null || run.cluster_name === filter.cluster) &&
      (filter.model === null || run.model === filter.model) &&
      (filter.strategy === null || run.strategy === filter.strategy) &&
      (filter.tag === null || run.tags.includes(filter.tag)) &&
      (filter.verdict === null || verdictsOf(run).includes(filter.verdict)) &&
      filter.ranges.every((range) => isWithin(run, range))
    );
  });
}

/** The filter "running" includes every state between queued and over. */
export function statusGroup(run: RunRow): string {
  return isOver(run.status) || run.status === 'queued' ? run.status : 'running';
}

/** A stable sort; missing values come last in both directions. */
export function sorted(runs: readonly RunRow[], { key, descending }: Sort): RunRow[] {
  return runs.toSorted((one, other) => {
    const [a, b] = [valueOf(one, key), valueOf(other, key)];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const order =
      typeof a === 'number' && typeof b === 'number'
        ? a - b
        : String(a).localeCompare(String(b), 'en', { numeric: true });
    return (descending ? -order : order) || other.id - one.id;
  });
}

/** The opposite direction of the same column, or the default direction of another one. */
export function nextSort(now: Sort, key: string): Sort {
  if (now.key === key) return { key, descending: !now.descending };
  return { key, descending: key === 'id' || key === 'created_at' || key === 'tokens_per_s' };
}

/** The distinct values, sorted. */
export function choices(runs: readonly RunRow[], of: (run: RunRow) => string | string[]): string[] {
  return [...new Set(runs.flatMap(of))].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}
