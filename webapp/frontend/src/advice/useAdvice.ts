import { useQuery } from '@tanstack/react-query';
import { api } from '@/api/client';
import { whenToAskAgain } from '@/api/queries';
import { useSettled } from '@/api/useSettled';
import type { Advice, AdviceChange, ClusterSpec, Objective, Workload } from '@/api/types';

/** What a person asks advice on: exactly one of `cluster_id` and `cluster`. */
export interface AdviceQuestion {
  cluster_id?: number | null;
  cluster?: ClusterSpec;
  model: string;
  weight_bits?: 8 | 4 | null;
  activation_bits?: 0 | 8 | null;
  draft_model?: string | null;
  workload: Partial<Workload>;
  by?: Objective;
  /** Whether several devices are better than one is asked, too. */
  answer?: boolean;
}

const SETTLED_MS = 120;

const AGAIN_MS = 3_000;

/** Milliseconds until advice that lacks some strategies, since the machine was busy, is asked for again. */
export const whenToGoOn = (advice: Pick<Advice, 'finished'> | undefined): number | false =>
  advice && !advice.finished ? AGAIN_MS : false;

/** Every strategy's figures, asked for shortly after every edit until there are all; null: nothing to ask yet. */
export function useAdvice(question: AdviceQuestion | null) {
  const { data: advice, ...answer } = useSettled<Advice>('/advice', question, SETTLED_MS, whenToGoOn);
  return { advice, ...answer };
}

/** What single changes of the cluster would do for `by`, once there is an answer that is not stale; asked for
 *  again while the server says that it is busy. */
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
  const isBusy = whenToAskAgain(answer.error) !== undefined;
  return {
    changes: answer.data,
    error: isBusy ? null : answer.error,
    busy: answer.isFetching || isBusy,
    /** Why they are not there yet, if the server says so. */
    why: isBusy ? answer.error?.message : undefined,
  };
}
