/** A row of the list of runs, for tests. */
import type { RunRow } from '@/api/types';

export function runRow(id: number, facts: Partial<RunRow> = {}): RunRow {
  return {
    id,
    name: `run ${id}`,
    status: 'finished',
    detail: '',
    starts_in_s: null,
    created_at: `2026-01-0${id}T00:00:00Z`,
    started_at: null,
    finished_at: null,
    cluster_name: 'lab-3',
    model: 'demo-lm',
    strategy: 'voltage',
    owner: 'ada',
    queue_position: null,
    locked: null,
    outcome: 'finished',
    correct: null,
    valid: null,
    lossy: null,
    params: {},
    figures: {},
    tags: [],
    experiment: null,
    ...facts,
  };
}
