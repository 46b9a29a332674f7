/** When tokens come in a race of two methods, from predictions of their first tokens. */
import type { RunReport, RunRequest } from '@/api/types';

/** So many tokens of each method are predicted; the later ones are taken to come as these do. */
export const PREDICTED_TOKENS = 6;

/** The run with another method, and with this rate on every link, up to the tokens that are predicted. */
export function racing(request: RunRequest, strategy: string, bit_per_s: number): RunRequest {
  const { cluster } = request;
  return {
    ...request,
    strategy,
    params: strategy === request.strategy ? request.params : {},
    workload: { ...request.workload, new_tokens: PREDICTED_TOKENS },
    cluster: cluster && {
      ...cluster,
      links: cluster.links.map((link) => ({ ...link, bit_per_s, reverse_bit_per_s: null })),
    },
  };
}

/** When the first token comes, how long each later one takes, and when the last one is there. */
export interface Lane {
  first_s: number;
  each_s: number;
  end_s: number;
}

export function laneOf(report: RunReport, newTokens: number): Lane | null {
  const times = report.requests[0]?.token_s ?? [];
  const [first_s, last_s] = [times[0], times.at(-1)];
  if (first_s === undefined || last_s === undefined) return null;
  const each_s = times.length > 1 ? (last_s - first_s) / (times.length - 1) : 0;
  return { first_s, each_s, end_s: first_s + each_s * (newTokens - 1) };
}

/** How many of `newTokens` are there at a time. */
export function tokensAt({ first_s, each_s, end_s }: Lane, time_s: number, newTokens: number): number {
  if (time_s < first_s) return 0;
  if (time_s >= end_s) return newTokens; // rounding would leave the last one out of some lanes
  return Math.min(newTokens, 1 + Math.floor((time_s - first_s) / each_s));
}
