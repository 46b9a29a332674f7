import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import type { PredictResult, RunRequest } from '@/api/types';

/** Fetches the prediction of a request, shortly after every change; null: the draft is not complete. */
export function usePrediction(request: RunRequest | null) {
  // Name and notes do not affect the prediction.
  const text = request && JSON.stringify({ ...request, name: '', notes: '' });
  const [settled] = useDebouncedValue(text, 400);
  const answer = useQuery({
    queryKey: ['prediction', settled],
    queryFn: ({ signal }) => api.post<PredictResult>('/predict', JSON.parse(settled ?? ''), signal),
    enabled: settled !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });
  return {
    data: answer.data,
    error: answer.error,
    retry: answer.refetch,
    waiting: text !== null && (settled !== text || answer.isFetching || answer.isPlaceholderData),
  };
}
