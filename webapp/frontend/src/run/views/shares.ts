/** AdaptLink: which device serves which feed-forward columns, including backups that took over. */
import type { LayoutOf, Mark } from '@/api/types';
import { rows } from '@/run/data/facts';

type Layout = LayoutOf<'shares'>;

export interface Columns {
  rank: number;
  start: number;
  stop: number;
}

/** The planned shards; those of failed devices are replaced by the backups that were promoted. */
export function servingOf(shards: Layout['shards'], promoted: readonly Mark[]): Columns[] {
  let serving = shards.map(columnsOf).filter((piece) => piece.stop > piece.start);
  for (const { facts } of promoted) {
    const backups = rows(facts['backups']).map(columnsOf);
    serving = serving.filter((piece) => piece.rank !== Number(facts['lost'])).concat(backups);
  }
  return serving.toSorted((a, b) => a.start - b.start);
}

export function backupsOf(backups: Layout['backups']): Columns[] {
  return Object.values(backups)
    .flatMap((pieces) => pieces.map(columnsOf))
    .toSorted((a, b) => a.start - b.start);
}

function columnsOf([rank = 0, start = 0, stop = 0]: readonly number[]): Columns {
  return { rank, start, stop };
}
