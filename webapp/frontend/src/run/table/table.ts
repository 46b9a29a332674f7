/** Filters and sorts the list of runs. */
import { isOver, type RunRow } from '@/api/types';

export interface Filter {
  text: string;
  status: string | null;
  cluster: string | null;
  model: string | null;
  strategy: string | null;
  tag: string | null;
}

export const NO_FILTER: Filter = {
  text: '',
  status: null,
  cluster: null,
  model: null,
  strategy: null,
  tag: null,
};

export type SortKey =
  | 'id'
  | 'name'
  | 'status'
  | 'cluster_name'
  | 'model'
  | 'strategy'
  | 'latency_s'
  | 'ttft_s'
  | 'tpot_s'
  | 'tokens_per_s'
  | 'owner'
  | 'created_at';

export interface Sort {
  key: SortKey;
  descending: boolean;
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
      (filter.tag === null || run.tags.includes(filter.tag))
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
    const [a, b] = [one[key], other[key]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    const order =
      typeof a === 'number' && typeof b === 'number'
        ? a - b
        : String(a).localeCompare(String(b), 'en', { numeric: true });
    return (descending ? -order : order) || other.id - one.id;
  });
}

/** The opposite direction of the same column, or the default direction of another one. */
export function nextSort(now: Sort, key: SortKey): Sort {
  if (now.key === key) return { key, descending: !now.descending };
  return { key, descending: key === 'id' || key === 'created_at' || key === 'tokens_per_s' };
}

/** The distinct values, sorted. */
export function choices(runs: readonly RunRow[], of: (run: RunRow) => string | string[]): string[] {
  return [...new Set(runs.flatMap(of))].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}
