import type { FleetWorker } from '@/api/types';

export const QUEUES: Record<string, string> = {
  emulate: 'emulates runs',
  plan: 'predicts runs',
  points: 'predicts experiments',
};

export type WorkerState = 'working' | 'ready' | 'draining' | 'drained' | 'refused';

/** What a worker does at present, in one word. */
export function state(worker: FleetWorker): WorkerState {
  if (worker.drained) return worker.runs.length > 0 ? 'draining' : 'drained';
  if (worker.refused) return 'refused';
  return worker.runs.length > 0 ? 'working' : 'ready';
}

/** The host of a Celery node name: `emulate@lab` → "lab". */
export function hostOf(worker: FleetWorker): string {
  return worker.node.slice(worker.node.indexOf('@') + 1);
}

const GB = 1e9;

/** "3.2 of 16 GB". */
export function memoryText(worker: FleetWorker): string {
  const text = (bytes: number) => (bytes / GB).toFixed(bytes < 10 * GB ? 1 : 0);
  return `${text(worker.available_bytes)} of ${text(worker.memory_bytes)} GB`;
}

/** What an emulating worker's kernel does for the emulation, and whether emulations have the machine's root. */
export function capabilityText(worker: FleetWorker): string {
  if (worker.queue !== 'emulate') return '';
  const netem = worker.capabilities.includes('netem') ? 'netem' : 'without netem';
  return worker.capabilities.includes('user namespaces') ? netem : `${netem}, with root rights`;
}
