/** Loads the stored events of a finished run into the same RunData as live ones. */
import { useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import type { ClusterSpec, ModelSpec, RunDetail, RunEvent } from '@/api/types';
import { RunData } from '@/run/data/runData';
import { pastOf } from './past';

/** Keeps more spans than a live run does. */
export const SPAN_BUDGET = 1_500_000;

interface Page {
  cursor: string;
  events: RunEvent[];
}

async function loadRecording(
  id: number,
  cluster: ClusterSpec,
  model: ModelSpec,
  signal?: AbortSignal,
): Promise<RunData> {
  const data = new RunData(cluster, model, SPAN_BUDGET);
  let cursor = '0';
  for await (const part of pastOf(id, cursor, signal)) {
    data.apply(part);
    cursor = part.cursor;
  }
  for (;;) {
    const page = await api.read<Page>(`/runs/${id}/events?since=${cursor}`, signal);
    data.apply(page.events);
    if (page.events.length === 0 || page.cursor === cursor) return data;
    cursor = page.cursor;
  }
}

/** The query for a run's recording, which never changes once the run is over. */
export function recordingQuery(run: Pick<RunDetail, 'id' | 'spec'>) {
  return {
    queryKey: ['recording', run.id],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      loadRecording(run.id, run.spec.cluster, run.spec.model, signal),
    staleTime: Infinity,
    gcTime: 60_000,
  };
}

export function useRecording(run: RunDetail) {
  return useQuery(recordingQuery(run));
}
