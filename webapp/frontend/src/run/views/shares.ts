/** Who serves which columns in AdaptLink, backups that took over included. */
import type { Mark } from '@/api/types';
import { record, rows } from './kinds';

export interface Columns {
  rank: number;
  start: number;
  stop: number;
}

/** The shards as planned, those of lost devices replaced by the backups that were promoted. */
export function servingOf(shards: number[][], promoted: readonly Mark[]): Columns[] {
  let serving = shards.map(columnsOf).filter((piece) => piece.stop > piece.start);
  for (const { facts } of promoted) {
    const instead = rows(facts['backups']).map(columnsOf);
    serving = serving.filter((piece) => piece.rank !== Number(facts['lost'])).concat(instead);
  }
  return serving.toSorted((a, b) => a.start - b.start);
}

export function backupsOf(value: unknown): Columns[] {
  return Object.values(record(value))
    .flatMap((pieces) => rows(pieces).map(columnsOf))
    .toSorted((a, b) => a.start - b.start);
}

function columnsOf([rank = 0, start = 0, stop = 0]: number[]): Columns {
  return { rank, start, stop };
}
