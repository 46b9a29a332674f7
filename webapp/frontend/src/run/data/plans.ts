/** The plans of a run: the first one, and those that were made while it went on. */
import type { Mark, Plan } from '@/api/types';
import { isPlan, text } from './facts';
import { planNow, type Changes } from './planNow';

/** A plan of the run: from when it was in force, and why it was made; '' for the first one. */
export interface PlanVersion {
  time_s: number;
  reason: string;
  plan: Plan;
}

export class Plans {
  readonly versions: PlanVersion[] = [];
  private inForce: { of: string; plan: Plan } | null = null;

  begin(time_s: number, plan: Plan): void {
    this.versions.push({ time_s, reason: '', plan });
  }

  /** Takes the plan of a mark `replanned`. */
  replan({ time_s, facts }: Mark): void {
    if (!isPlan(facts['plan'])) return;
    this.versions.push({ time_s, reason: text(facts['reason']) || 'planned again', plan: facts['plan'] });
  }

  /** The plan that was made last; null before the first. */
  get newest(): Plan | null {
    return this.versions.at(-1)?.plan ?? null;
  }

  /** When the plan in force was made, and why; null for the first one. */
  get replanned(): { time_s: number; reason: string } | null {
    const last = this.versions.at(-1);
    return last?.reason ? { time_s: last.time_s, reason: last.reason } : null;
  }

  /** The newest plan with what its method has changed since, and without devices that have failed. The same object
   * as long as `version` and the devices that are lost are. */
  now(version: string, changes: Changes): Plan | null {
    const made = this.versions.at(-1);
    if (!made) return null;
    const of = `${this.versions.length} ${version} ${[...changes.lost].join()}`;
    if (this.inForce?.of !== of) {
      const marks = changes.marks.filter((mark) => mark.time_s >= made.time_s);
      this.inForce = { of, plan: planNow(made.plan, { ...changes, marks }) };
    }
    return this.inForce.plan;
  }
}
