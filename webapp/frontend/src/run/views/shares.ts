/** AdaptLink: which device serves which feed-forward columns now, and which has a copy of them. */
import type { LayoutOf, Mark } from '@/api/types';
import { number, rows } from '@/run/data/facts';

type Layout = LayoutOf<'shares'>;

export interface Columns {
  rank: number;
  start: number;
  stop: number;
}

export interface SharesState {
  serving: Columns[];
  copies: Columns[];
  /** Share of the secondaries' columns that have a copy on another device; null if there are no secondaries. */
  coverage: number | null;
  epoch: number;
}

/**
 * The plan after what has happened since `since_s`, when it began: promotions, new copies, lost copies, and the
 * failed devices `lost`, whose copies are gone even before the primary notices.
 */
export function stateOf(
  layout: Layout,
  marks: readonly Mark[],
  since_s: number,
  lost: ReadonlySet<number>,
): SharesState {
  const primary = layout.shards.map(columnsOf)[0];
  let others = layout.shards.slice(1).map(columnsOf);
  let copies = Object.values(layout.backups).flatMap((pieces) => pieces.map(columnsOf));
  let { epoch } = layout;
  for (const { time_s, name, facts } of marks) {
    if (time_s < since_s) continue;
    epoch = Math.max(epoch, number(facts['epoch'], 0));
    if ('serving' in facts) {
      others = rows(facts['serving']).map(columnsOf);
      copies = rows(facts['copies']).map(columnsOf);
    } else if (name === 'promoted') {
      // runs of earlier versions: the backups serve, and are no copies any more
      const promoted = rows(facts['backups']).map(columnsOf);
      others = others.filter((piece) => piece.rank !== Number(facts['lost'])).concat(promoted);
      copies = copies.filter((copy) => !promoted.some((piece) => isSame(piece, copy)));
    }
  }
  copies = copies.filter((copy) => !lost.has(copy.rank));
  return {
    serving: [...(primary ? [primary] : []), ...others]
      .filter((piece) => piece.stop > piece.start)
      .toSorted((a, b) => a.start - b.start),
    copies: copies.toSorted((a, b) => a.start - b.start),
    coverage: coverageOf(others, copies),
    epoch,
  };
}

/** A copy counts only on another device than the one that serves the columns. */
function coverageOf(serving: readonly Columns[], copies: readonly Columns[]): number | null {
  let columns = 0;
  let saved = 0;
  for (const piece of serving) {
    columns += piece.stop - piece.start;
    let at = piece.start;
    for (const copy of copies.toSorted((a, b) => a.start - b.start)) {
      if (copy.rank === piece.rank) continue;
      saved += Math.max(0, Math.min(copy.stop, piece.stop) - Math.max(copy.start, at));
      at = Math.max(at, Math.min(copy.stop, piece.stop));
    }
  }
  return columns > 0 ? saved / columns : null;
}

function isSame(a: Columns, b: Columns): boolean {
  return a.rank === b.rank && a.start === b.start && a.stop === b.stop;
}

function columnsOf([rank = 0, start = 0, stop = 0]: readonly number[]): Columns {
  return { rank, start, stop };
}
