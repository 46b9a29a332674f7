import { useMutation } from '@tanstack/react-query';
import { api } from '@/api/client';
import type { Schemas } from '@/api/types/schemas';
import type { AdviceQuestion } from './useAdvice';

export type Reply = Schemas['Reply'];
export type QuestionKind = Reply['question'];

/** One of the four questions of somebody who builds a cluster, and what it needs besides. */
export interface Ask extends AdviceQuestion {
  question: QuestionKind;
  tokens_per_s?: number;
  prices?: { boards: Record<string, number>; per_kwh: number | null };
}

/** A question that is asked when a person presses the button: an answer takes seconds. */
export function useQuestion() {
  return useMutation({ mutationFn: (ask: Ask) => api.post<Reply>('/advice/question', ask) });
}
