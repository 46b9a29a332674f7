/** Undo and redo: a stack of past values, the present, and what was undone. Values are never changed. */

export interface History<T> {
  past: readonly T[];
  present: T;
  future: readonly T[];
  /** Names the last edit if a following one of the same name belongs to the same step (typing, say). */
  mergeKey: string | null;
}

const MAX_STEPS = 200;

export function begin<T>(present: T): History<T> {
  return { past: [], present, future: [], mergeKey: null };
}

/** The present becomes `next`. Edits in a row with the same `mergeKey` are one step. */
export function commit<T>(history: History<T>, next: T, mergeKey: string | null = null): History<T> {
  if (next === history.present) return history;
  const merges = mergeKey !== null && mergeKey === history.mergeKey;
  const past = merges ? history.past : [...history.past, history.present].slice(-MAX_STEPS);
  return { past, present: next, future: [], mergeKey };
}

/** The next edit starts a step of its own, whatever its name. */
export function seal<T>(history: History<T>): History<T> {
  return history.mergeKey === null ? history : { ...history, mergeKey: null };
}

export function undo<T>(history: History<T>): History<T> {
  const previous = history.past.at(-1);
  if (previous === undefined) return history;
  return {
    past: history.past.slice(0, -1),
    present: previous,
    future: [history.present, ...history.future],
    mergeKey: null,
  };
}

export function redo<T>(history: History<T>): History<T> {
  const next = history.future[0];
  if (next === undefined) return history;
  return {
    past: [...history.past, history.present],
    present: next,
    future: history.future.slice(1),
    mergeKey: null,
  };
}
