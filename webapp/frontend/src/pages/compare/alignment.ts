/** Runs side by side on one scale, so that the same token of all stands at the same place. */
import type { RunData } from '@/run/data/runData';

/** The time of token `number` (from 1) of the first request; null if the run has not generated so many. */
export function tokenTime_s(data: Pick<RunData, 'tokens'>, number: number): number | null {
  const { tokens } = data;
  for (let at = 0; at < tokens.length; at += 1) {
    const token = tokens.at(at)!;
    if (token.request === 0 && token.index === number - 1) return token.time_s;
  }
  return null;
}

/** By how much each run's own time is later than the place where it is shown: the run whose moment comes last keeps its
 * times, the others begin later. A run without the moment keeps its times too. */
export function shifts_s(moments: readonly (number | null)[]): number[] {
  const last = Math.max(0, ...moments.map((moment) => moment ?? 0));
  return moments.map((moment) => (moment === null ? 0 : moment - last));
}
