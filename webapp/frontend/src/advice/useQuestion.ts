import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api } from '@/api/client';
import { whenToAskAgain } from '@/api/queries';
import type { Schemas } from '@/api/types/schemas';
import type { AdviceQuestion } from './useAdvice';

export type Reply = Schemas['Reply'];
export type QuestionKind = Reply['question'];

/** One of the four questions of somebody who builds a cluster, and what it needs besides. */
export interface Ask extends AdviceQuestion {
  question: QuestionKind;
  tokens_per_s?: number;
  prices?: { boards: Record<string, number>; per_kwh: number | null };
  /** What is to be least of boards to buy; null: the price where there are prices, else the power. */
  rank?: 'price' | 'power' | 'number' | null;
}

/** A question that is asked when a person presses the button. Where the server is busy it waits and is asked again. */
export function useQuestion() {
  const [asked, setAsked] = useState<{ ask: Ask; atMs: number } | null>(null);
  const { data, error, isFetching } = useQuery({
    queryKey: ['advice-question', asked],
    queryFn: ({ signal }) => api.post<Reply>('/advice/question', asked?.ask, signal),
    enabled: asked !== null,
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
  });
  const isBusy = whenToAskAgain(error) !== undefined;
  const waits = isFetching || isBusy;
  return {
    ask: (ask: Ask) => setAsked({ ask, atMs: Date.now() }),
    stop: () => setAsked(null),
    asked: asked?.ask,
    reply: data,
    error: waits ? null : error,
    /** When the question was asked that has no answer yet, and why it waits if the server says so. */
    waiting: waits && asked ? { sinceMs: asked.atMs, why: isBusy && error ? error.message : null } : null,
  };
}
