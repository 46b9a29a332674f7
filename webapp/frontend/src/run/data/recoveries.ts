/** Recoveries from failures of devices, folded from marks while the run goes on; the report has the final figures. */
import type { Mark, Recovery } from '@/api/types';
import { failure, number, text } from './facts';

/** A recovery of the report, plus the reason; steps that are not finished are null. */
export interface LiveRecovery extends Omit<Recovery, 'replan_s' | 'reload_s'> {
  known_s: number;
  replan_s: number | null;
  reload_s: number | null;
  reason: string;
}

const PROGRESS = new Set(['token_emitted', 'request_finished']);

/** One per detected failure and per device that joined, in order of time. */
export class Recoveries {
  readonly list: LiveRecovery[] = [];
  private readyAt_s = 0;

  /** Frozen devices that nobody has missed: one that goes on needs no recovery. */
  private readonly asleep = new Set<string>();

  apply(mark: Mark): void {
    if (mark.name === 'device_frozen') this.asleep.add(mark.device);
    const wasAsleep =
      (mark.name === 'loss_detected' || mark.name === 'device_joined') && this.asleep.delete(mark.device);
    if (mark.name === 'device_joined' && wasAsleep) return;
    if (mark.name === 'loss_detected' || mark.name === 'device_joined') return this.begin(mark);
    const last = this.list.at(-1);
    if (!last) return;
    if (mark.name === 'replanned') {
      last.replanned = true;
      last.replan_s = mark.time_s - last.known_s;
      last.reason = text(mark.facts['reason']);
      this.readyAt_s = mark.time_s;
    } else if (mark.name === 'reloaded' && last.replan_s !== null) {
      this.readyAt_s = Math.max(this.readyAt_s, mark.time_s);
      last.reload_s = this.readyAt_s - last.known_s - last.replan_s;
    } else if (PROGRESS.has(mark.name) && last.rebuild_s === null && mark.time_s > this.readyAt_s) {
      last.rebuild_s = mark.time_s - this.readyAt_s;
    }
  }

  private begin(mark: Mark): void {
    const at_s = number(mark.facts['since_s'], mark.time_s);
    this.readyAt_s = mark.time_s;
    this.list.push({
      device: mark.device,
      how: failure(mark.facts['how']),
      at_s,
      known_s: mark.time_s,
      detect_s: mark.time_s - at_s,
      replanned: false,
      replan_s: null,
      reload_s: null,
      rebuild_s: null,
      reason: '',
    });
  }
}
