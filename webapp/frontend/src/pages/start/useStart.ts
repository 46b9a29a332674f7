import { useNavigate } from '@/components/navigation';
import { useChange } from '@/api/queries';
import type { RunRequest } from '@/api/types';
import { startRun } from '@/run/request/startRun';

/** `go` starts a run and opens its page. */
export function useStart(request: RunRequest) {
  const navigate = useNavigate();
  const start = useChange('runs', startRun);
  return {
    go: () => start.mutate(request, { onSuccess: ({ id }) => navigate(`/runs/${id}`) }),
    busy: start.isPending || start.isSuccess,
    refused: start.error,
  };
}
