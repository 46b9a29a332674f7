/** The rows of "What happened": from the recording once it is read, until then from the report alone. */
import type { Schemas } from '@/api/types/schemas';
import type { Effect } from '@/run/data/effects';
import type { RunData } from '@/run/data/runData';
import { capital } from '@/format/words';

type ChangeEffect = Schemas['ChangeEffect'];
type FromHereOn = Schemas['FromHereOn'];

export interface Happening {
  key: string;
  time_s: number;
  label: string;
  /** Who made it: a person, 'the scenario', or 'the run' by itself; '' while it is not known. */
  by: string;
  effect: Effect | null;
  /** What was predicted right after it; several changes in a row are predicted together, after the last. */
  rest: FromHereOn | null;
}

/** What a run does by itself, without anybody's change. */
const OWN = new Set(['replanned', 'promoted']);

export function happenings(
  reported: readonly ChangeEffect[],
  recorded: Pick<RunData, 'injections'> | undefined,
  rests: readonly FromHereOn[] = [],
): Happening[] {
  const rows = rowsOf(reported, recorded);
  const isOwn = ({ by }: Happening) => by === 'the run';
  return rows.map((row, at) => {
    const next_s = rows.slice(at + 1).find((later) => !isOwn(later))?.time_s ?? Infinity;
    const rest = rests.find(({ at_s }) => at_s >= row.time_s && at_s < next_s);
    return { ...row, rest: isOwn(row) ? null : (rest ?? null) };
  });
}

function rowsOf(
  reported: readonly ChangeEffect[],
  recorded: Pick<RunData, 'injections'> | undefined,
): Happening[] {
  if (recorded && recorded.injections.length >= reported.length) {
    return recorded.injections.map(({ time_s, label, by, name }, at) => {
      const isOwn = OWN.has(name);
      return {
        key: `${at}`,
        time_s,
        label,
        by: isOwn ? 'the run' : by || 'the scenario',
        effect: isOwn ? null : effectIn(nearest(reported, time_s)),
        rest: null,
      };
    });
  }
  return reported.map(({ at_s, what, before_s, after_s, worst_s }, at) => ({
    key: `${at}`,
    time_s: at_s,
    label: capital(what),
    by: '',
    effect: effectIn({ before_s, after_s, worst_s }),
    rest: null,
  }));
}

/** The reported change of this time: a recording has the time at which it was made, the report that of its plan. */
const nearest = (reported: readonly ChangeEffect[], time_s: number) =>
  reported.toSorted((a, b) => Math.abs(a.at_s - time_s) - Math.abs(b.at_s - time_s))[0];

function effectIn(change: Pick<ChangeEffect, 'before_s' | 'after_s' | 'worst_s'> | undefined): Effect | null {
  if (!change) return null;
  const { before_s, after_s, worst_s } = change;
  return before_s === null || after_s === null || worst_s === null ? null : { before_s, after_s, worst_s };
}
