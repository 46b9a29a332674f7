/** The rows of "What happened": from the recording once it is read, until then from the report alone. */
import type { Schemas } from '@/api/types/schemas';
import { type Effect, effectsOf } from '@/run/data/effects';
import type { RunData } from '@/run/data/runData';

type ChangeEffect = Schemas['ChangeEffect'];

export interface Happening {
  key: string;
  time_s: number;
  label: string;
  /** Who made it: a person, 'the scenario', or 'the run' by itself; '' while it is not known. */
  by: string;
  effect: Effect | null;
}

/** What a run does by itself, without anybody's change. */
const OWN = new Set(['replanned', 'promoted']);

export function happenings(
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
    }));
  }
  return reported.map(({ at_s, what, before_s, after_s, worst_s }, at) => ({
    key: `${at}`,
    time_s: at_s,
    label: what.charAt(0).toUpperCase() + what.slice(1),
    by: '',
    effect: before_s === null || after_s === null || worst_s === null ? null : { before_s, after_s, worst_s },
  }));
}
