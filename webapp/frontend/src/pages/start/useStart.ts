import { useNavigate } from '@/components/navigation';
import { api } from '@/api/client';
import { type Health, useChange } from '@/api/queries';
import type { RunRequest } from '@/api/types';

/** `go` starts a run, once the workers of a server that has just begun are there, and opens its page. */
export function useStart(request: RunRequest) {
  const navigate = useNavigate();
  const start = useChange('runs', async (asked: RunRequest) => {
    await workersThere(1_000);
    return api.post<{ id: number }>('/runs', asked);
  });
  return {
    go: () => start.mutate(request, { onSuccess: ({ id }) => navigate(`/runs/${id}`) }),
    busy: start.isPending || start.isSuccess,
    refused: start.error,
  };
}

/** Asks every `againMs` until all workers are there, or the server no longer expects them. */
export async function workersThere(againMs: number): Promise<void> {
  while ((await api.get<Health>('/health')).starting) await new Promise((goOn) => setTimeout(goOn, againMs));
}
