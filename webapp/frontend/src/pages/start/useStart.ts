import { useNavigate } from '@/components/navigation';
import { api } from '@/api/client';
import { useChange } from '@/api/queries';
import type { RunRequest } from '@/api/types';

/** `go` starts a run and opens its page. */
export function useStart(request: RunRequest) {
  const navigate = useNavigate();
  const start = useChange('runs', (asked: RunRequest) => api.post<{ id: number }>('/runs', asked));
  return {
    go: () => start.mutate(request, { onSuccess: ({ id }) => navigate(`/runs/${id}`) }),
    busy: start.isPending || start.isSuccess,
    refused: start.error,
  };
}
