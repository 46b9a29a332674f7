/** How a run draws its tokens, in words. */
import type { RunSpec } from '@/api/types';

/** Empty where tokens are the most likely ones. */
export function samplingWords({ workload, seed }: Pick<RunSpec, 'workload' | 'seed'>): string {
  const { temperature = 0, top_p = 1, top_k = 0 } = workload;
  if (temperature === 0) return '';
  const among = `${top_p < 1 ? `, top-p ${top_p}` : ''}${top_k > 0 ? `, top-k ${top_k}` : ''}`;
  return `sampled at T=${temperature}${among}, seed ${seed}`;
}
