/** The rows of "What happened": from the recording once it is read, until then from the report alone. */
import type { Schemas } from '@/api/types/schemas';
import { type Effect, effectsOf } from '@/run/data/effects';
import type { RunData } from '@/run/data/runData';

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
  recorded: Pick<RunData, 'injections' | 'tokens'> | undefined,
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
  recorded: Pick<RunData, 'injections' | 'tokens'> | undefined,
): Happening[] {
  if (recorded && recorded.injections.length >= reported.length) {
    const { injections } = recorded;
    const effects = effectsOf(injections, recorded.tokens.toArray());
    return injections.map(({ time_s, label, by, name }, at) => ({
      key: `${at}`,
      time_s,
      label,
      by: OWN.has(name) ? 'the run' : by || 'the scenario',
      effect: effects[at] ?? null,
      rest: null,
    }));
  }
  return reported.map(({ at_s, what, before_s, after_s, worst_s }, at) => ({
    key: `${at}`,
    time_s: at_s,
    label: what.charAt(0).toUpperCase() + what.slice(1),
    by: '',
    effect: before_s === null || after_s === null || worst_s === null ? null : { before_s, after_s, worst_s },
    rest: null,
  }));
}
