/** Which device computes which attention head of which layer (EdgeFormer), folded from marks. */
import type { Mark } from '@/api/types';
import { numberOrNull, numbers, numbersOrNull, text } from './facts';

export const PRUNED = -1;

export interface HeadRow {
  layer: number;
  /** Rank of the device that owns the layer. */
  owner: number;
  /** Rank per head, or `PRUNED`. */
  deviceOf: number[];
  /** Layer-importance score per head; null for those that are pruned. */
  scores: (number | null)[];
  /** Heads that the mapping table knew in the newest look-up, those it did not, and those measured of these. */
  hits: number;
  misses: number;
  measured: number;
  collab_s: number | null;
  deadline_s: number | null;
  /** Heads that moved to another device at the last reallocation of this layer. */
  moved: ReadonlySet<number>;
  reason: string;
  time_s: number;
}

/** Numbers of one layer's heads, for the head map. */
export interface HeadCounts {
  kept: number;
  lent: number;
  hits: number;
  misses: number;
  measured: number;
}

/** Kept and lent heads as they are now. Look-ups of the whole run if its report is there, else the newest. */
export function countsOf(row: HeadRow, block?: HeadCounts): HeadCounts {
  const kept = row.deviceOf.filter((rank) => rank !== PRUNED);
  const { hits, misses, measured } = block ?? row;
  return {
    kept: kept.length,
    lent: kept.filter((rank) => rank !== row.owner).length,
    hits,
    misses,
    measured,
  };
}

/** The newest allocation of every layer's heads. */
export class HeadMap {
  readonly rows = new Map<number, HeadRow>();
  /** Grows with every change of `rows`. */
  version = 0;

  apply(mark: Mark): void {
    const { facts } = mark;
    const layer = Number(facts['layer']);
    const old = this.rows.get(layer);
    if (mark.name === 'heads') {
      this.version += 1;
      const deviceOf = numbers(facts['device_of']);
      this.rows.set(layer, {
        layer,
        owner: Number(facts['owner']),
        deviceOf,
        scores: numbersOrNull(facts['scores']),
        hits: numberOrNull(facts['hits']) ?? 0,
        misses: numberOrNull(facts['misses']) ?? 0,
        measured: numberOrNull(facts['measured']) ?? 0,
        collab_s: numberOrNull(facts['t_collab_s']),
        deadline_s: numberOrNull(facts['t_max_s']),
        moved: old?.moved ?? new Set(),
        reason: old?.reason ?? '',
        time_s: mark.time_s,
      });
    } else if (mark.name === 'reallocated' && old) {
      this.version += 1;
      const before = numbers(facts['device_of_before']);
      const deviceOf = numbers(facts['device_of']);
      const moved = new Set(deviceOf.flatMap((rank, head) => (rank === before[head] ? [] : [head])));
      this.rows.set(layer, {
        ...old,
        deviceOf,
        moved,
        reason: text(facts['reason']),
        time_s: mark.time_s,
      });
    }
  }

  list(): HeadRow[] {
    return [...this.rows.values()].toSorted((a, b) => a.layer - b.layer);
  }
}
