import { useNavigate } from '@/components/navigation';
import { api } from '@/api/client';
import { useCatalogue, useChange, useClusters } from '@/api/queries';
import type { RunRequest } from '@/api/types';
import { type Draft, FIRST_DRAFT, firstCluster, toRequest } from '@/run/request/draft';

/** Tensor parallelism uses the links most; dilation 8 gives half a minute to watch the run and change it. */
export const DEMO: Draft = {
  ...FIRST_DRAFT,
  strategy: 'megatron',
  newTokens: 64,
  dilationKind: 'fixed',
  dilation: 8,
};

/** The demo run: its cluster and model, and `go`, which starts it and opens its page. */
export function useDemo() {
  const navigate = useNavigate();
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const start = useChange('runs', (request: RunRequest) => api.post<{ id: number }>('/runs', request));
  const id = clusters.data && firstCluster(clusters.data, null);
  const cluster = clusters.data?.find((row) => row.id === id);
  const model = catalogue.data?.models.find((row) => row.name === DEMO.model);
  const strategy = catalogue.data?.strategies.find((row) => row.name === DEMO.strategy);
  const go = () => {
    if (!cluster) return;
    start.mutate(toRequest({ ...DEMO, clusterId: cluster.id }, model), {
      onSuccess: (run) => navigate(`/runs/${run.id}`),
    });
  };
  return {
    cluster,
    model,
    strategy,
    go,
    ready: Boolean(cluster && model),
    pending: clusters.isPending || catalogue.isPending,
    busy: start.isPending || start.isSuccess,
    failed: clusters.error ?? catalogue.error,
    refused: start.error,
  };
}
