/** The choices of the last run that was started in this browser, for the next one. */
import { type Draft, FIRST_DRAFT, kept } from './draft';

const KEY = 'edgeloom-last-request';

/** What belongs to one run alone: its name, its scenario, its cluster of another run, and a plan made by hand. */
function forNext(draft: Draft): Draft {
  const params = Object.fromEntries(
    Object.entries(draft.params).map(([strategy, params]) => [
      strategy,
      Object.fromEntries(Object.entries(params).filter(([key]) => key !== 'plan')),
    ]),
  );
  return {
    ...draft,
    params,
    cluster: null,
    workload: { ...draft.workload, image: null },
    scenario: FIRST_DRAFT.scenario,
    name: '',
    notes: '',
    tags: [],
  };
}

export function remember(draft: Draft, storage: Pick<Storage, 'setItem'> = localStorage): void {
  try {
    storage.setItem(KEY, JSON.stringify(forNext(draft)));
  } catch {
    // A full or forbidden store: the next form begins with the defaults.
  }
}

export function forget(storage: Pick<Storage, 'removeItem'> = localStorage): void {
  storage.removeItem(KEY);
}

/** The last choices, completed by defaults; null if there are none, or of a model or strategy that is gone. */
export function remembered(
  known: { models: readonly { name: string }[]; strategies: readonly { name: string }[] },
  storage: Pick<Storage, 'getItem'> = localStorage,
): Draft | null {
  const stored = read(storage);
  if (!stored) return null;
  const draft = kept(stored);
  const has = (rows: readonly { name: string }[], name: string) => rows.some((row) => row.name === name);
  return has(known.models, draft.model) && has(known.strategies, draft.strategy) ? draft : null;
}

function read(storage: Pick<Storage, 'getItem'>): object | null {
  try {
    const value: unknown = JSON.parse(storage.getItem(KEY) ?? 'null');
    return value !== null && typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}
