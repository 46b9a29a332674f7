/** Undo and redo: past values, the present one, and undone ones. Values are immutable. */

export interface History<T> {
  past: readonly T[];
  present: T;
  future: readonly T[];
  /** The last edit's key; a following edit with the same key (typing) joins its step. */
  mergeKey: string | null;
}

const MAX_STEPS = 200;

export function begin<T>(present: T): History<T> {
  return { past: [], present, future: [], mergeKey: null };
}

/** Makes `next` the present value. Consecutive edits with the same `mergeKey` are one step. */
export function commit<T>(history: History<T>, next: T, mergeKey: string | null = null): History<T> {
  if (next === history.present) return history;
  const merges = mergeKey !== null && mergeKey === history.mergeKey;
  const past = merges ? history.past : [...history.past, history.present].slice(-MAX_STEPS);
  return { past, present: next, future: [], mergeKey };
}

/** Makes the next edit a step of its own, whatever its key. */
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
