/** The plans of a run that can be shown: as planned, after every new plan, and as it is now. */
import type { Plan } from '@/api/types';
import type { PlanVersion } from '@/run/data/runData';

export interface ShownVersion {
  label: string;
  /** When and why it came into force; '' for the first plan while it is in force. */
  about: string;
  plan: Plan;
}

/** At most this many plans can be chosen: the first, and the newest ones. */
const MAX_VERSIONS = 5;

/** Oldest first; the last one is in force. */
export function versionsOf(inForce: Plan, made: readonly PlanVersion[], over: boolean): ShownVersion[] {
  const now = over ? 'Final' : 'Now';
  const last = made.at(-1);
  const changed = last !== undefined && last.plan !== inForce;
  if (!last || (made.length === 1 && !changed)) return [{ label: now, about: '', plan: inForce }];
  const versions = made.map(({ time_s, reason, plan }, at): ShownVersion => ({
    label: at === 0 ? 'Planned' : `${time_s.toFixed(3)} s`,
    about: at === 0 ? 'as planned, before any change' : `new plan at ${time_s.toFixed(3)} s: ${reason}`,
    plan,
  }));
  if (changed) {
    const what = 'with what the method changed by itself, and without devices that have failed';
    versions.push({ label: now, about: `${over ? 'at the end' : 'now'}: ${what}`, plan: inForce });
  } else versions[versions.length - 1] = { ...versions.at(-1)!, label: now };
  return [...versions.slice(0, 1), ...versions.slice(1).slice(1 - MAX_VERSIONS)];
}
