/** Rows of an experiment in the browser: kept up to date, filtered, and compared. */
import type { RowAnswer, RowState } from './answers';
import type { Coordinate } from './types';

const key = ({ index, world }: Pick<RowAnswer, 'index' | 'world'>) => `${index}/${world}`;

/** The rows with those that changed; a later row replaces the earlier one of its point and world. */
export function merged(old: readonly RowAnswer[], changed: readonly RowAnswer[]): RowAnswer[] {
  const all = new Map(old.map((row) => [key(row), row]));
  for (const row of changed) all.set(key(row), row);
  return [...all.values()].toSorted((a, b) => a.index - b.index || a.world.localeCompare(b.world));
}

export interface Difference {
  name: string;
  /** One per row; undefined where a row lacks it. */
  values: (Coordinate | undefined)[];
}

/** Coordinates, seed and world of rows: only what differs among them. */
export function differing(rows: readonly RowAnswer[]): Difference[] {
  const records = rows.map(
    ({ coordinates, seed, world }) => ({ ...coordinates, seed, world }) as Record<string, Coordinate>,
  );
  const names = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return names
    .map((name) => ({ name, values: records.map((record) => record[name]) }))
    .filter(({ values }) => values.some((value) => value !== values[0]));
}

export const STATE_TEXT: Record<RowState, string> = {
  waiting: 'waiting',
  running: 'running',
  done: 'done',
  failed: 'failed',
  problem: 'cannot run',
};
