import { useDebouncedValue } from '@mantine/hooks';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api } from './client';
import { whenToAskAgain } from './queries';

/**
 * Posts `body` to `path` shortly after every change of it, and keeps the last answer until the next one; null:
 * nothing to ask yet. Equal bodies are one question, whoever asks. `stale` says that `data` answers an earlier one.
 */
export function useSettled<Answer>(
  path: string,
  body: unknown,
  afterMs: number,
  /** Milliseconds until the same question is asked again, by its last answer. */
  againAfter?: (answer: Answer | undefined) => number | false,
) {
  const text = body === null ? null : JSON.stringify(body);
  const [settled] = useDebouncedValue(text, afterMs);
  const answer = useQuery({
    queryKey: [path, settled],
    queryFn: ({ signal }) => api.post<Answer>(path, JSON.parse(settled ?? ''), signal),
    enabled: settled !== null && text !== null,
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => whenToAskAgain(state.error) ?? againAfter?.(state.data) ?? false,
    staleTime: Infinity,
    gcTime: 60_000,
    retry: false,
  });
  return {
    data: text === null ? undefined : answer.data,
    error: answer.error,
    retry: answer.refetch,
    stale:
      text !== null && (settled !== text || answer.isPlaceholderData || (!againAfter && answer.isFetching)),
  };
}
