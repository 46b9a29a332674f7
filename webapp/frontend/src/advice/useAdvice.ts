import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import type { Advice, AdviceChange, ClusterSpec, Objective, Workload } from '@/api/types';

/** Exactly one of `cluster_id` and `cluster`. */
export interface AdviceQuestion {
  cluster_id?: number | null;
  cluster?: ClusterSpec;
  model: string;
  workload: Partial<Workload>;
}

const SETTLED_MS = 120;

/** Every strategy's figures, asked for shortly after every edit; null: nothing to ask yet. */
export function useAdvice(question: AdviceQuestion | null) {
  // As text, so that an equal question is the same question.
  const text = question && JSON.stringify(question);
  const [settled] = useDebouncedValue(text, SETTLED_MS);
  const answer = useQuery({
    queryKey: ['advice', settled],
    queryFn: ({ signal }) => api.post<Advice>('/advice', JSON.parse(settled ?? ''), signal),
    enabled: settled !== null,
    placeholderData: keepPreviousData,
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });
  return {
    advice: answer.data,
    error: answer.error,
    retry: answer.refetch,
    stale: text !== null && (settled !== text || answer.isFetching || answer.isPlaceholderData),
  };
}

/** What single changes of the cluster would do for `by`, once there is an answer that is not stale. */
export function useChanges(question: AdviceQuestion | null, by: Objective, advice: Advice | undefined) {
  const answer = useQuery({
    queryKey: ['advice-changes', JSON.stringify(question), by, advice],
    queryFn: ({ signal }) =>
      api.post<AdviceChange[]>('/advice/changes', { ...question, by, rows: advice?.rows ?? [] }, signal),
    enabled: question !== null && advice !== undefined,
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });
  return { changes: answer.data, error: answer.error, busy: answer.isFetching };
}
