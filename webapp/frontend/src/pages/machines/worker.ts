import type { FleetWorker, Holder } from '@/api/types';
import { holderText } from '@/format/holder';
import { duration } from '@/format/units';
import { capital } from '@/format/words';

export const QUEUES: Record<string, string> = {
  emulate: 'emulates runs',
  plan: 'predicts runs',
  points: 'predicts experiments',
};

export type WorkerState = 'working' | 'calibrating' | 'ready' | 'draining' | 'drained' | 'refused';

/** What a worker does at present, in one word. */
export function state(worker: FleetWorker): WorkerState {
  if (worker.drained) return worker.runs.length > 0 || worker.calibrating ? 'draining' : 'drained';
  if (worker.refused) return 'refused';
  if (worker.calibrating) return 'calibrating';
  return worker.runs.length > 0 ? 'working' : 'ready';
}

/** The host of a Celery node name: `emulate@lab` → "lab". */
export function hostOf(worker: FleetWorker): string {
  return worker.node.slice(worker.node.indexOf('@') + 1);
}

const GB = 1e9;

/** "3.2 of 16 GB". */
export function memoryText(worker: Pick<FleetWorker, 'available_bytes' | 'memory_bytes'>): string {
  const text = (bytes: number) => (bytes / GB).toFixed(bytes < 10 * GB ? 1 : 0);
  return `${text(worker.available_bytes)} of ${text(worker.memory_bytes)} GB`;
}

/** What an emulating worker's kernel does for the emulation, and whether emulations have the machine's root. */
export function capabilityText(worker: FleetWorker): string {
  if (worker.queue !== 'emulate') return '';
  const netem = worker.capabilities.includes('netem') ? 'netem' : 'without netem';
  return worker.capabilities.includes('user namespaces') ? netem : `${netem}, with root rights`;
}

/** What a calibration that somebody asked for does, and its share of the time that it takes; null if none was
 * asked for. It never shows itself as complete: only the new calibration says so. */
export function calibrationNow(worker: FleetWorker): { text: string; share: number } | null {
  const now = worker.calibrating;
  if (!now) {
    return worker.calibration_wanted ? { text: 'Begins when the worker is free.', share: 0 } : null;
  }
  if (now.elapsed_s == null) return { text: capital(now.what), share: 0 };
  const times = `${duration(Math.round(now.elapsed_s))} of about ${duration(now.about_s)}`;
  return { text: `${times}: ${now.what}`, share: Math.min(0.99, now.elapsed_s / now.about_s) };
}

/** Another program that emulates on a worker's machine, and whether runs wait for it. */
export function besideText(holder: Holder): string {
  const who = holderText(holder);
  return holder.counts
    ? `In use by ${who}; runs wait for it.`
    : `Also on this machine: ${who}; no run waits for it.`;
}
