/** Starts a run; on a server that has just begun, once its workers are there. */
import { api } from '@/api/client';
import type { Health } from '@/api/queries';
import type { RunRequest } from '@/api/types';

export async function startRun(asked: RunRequest): Promise<{ id: number }> {
  await workersThere(1_000);
  return api.post('/runs', asked);
}

/** Asks every `againMs` until all workers are there, or the server no longer expects them. */
export async function workersThere(againMs: number): Promise<void> {
  while ((await api.get<Health>('/health')).starting) await new Promise((goOn) => setTimeout(goOn, againMs));
}
