/** What a change did to the latency of tokens: before it, after it, and the worst after it. */
import type { Injection } from './marks';
import type { Token } from './runData';

export interface Effect {
  before_s: number;
  after_s: number;
  worst_s: number;
}

/** Tokens on either side of a change that are looked at. */
const TOKENS = 12;

/**
 * One per change, in their order; null where no token came on one side. Medians of at most 12 tokens after the first
 * of a request, not beyond the neighbouring changes; changes within one token have their effect together.
 */
export function effectsOf(changes: readonly Injection[], tokens: readonly Token[]): (Effect | null)[] {
  const decoded = tokens.filter((token) => token.index > 0).toSorted((a, b) => a.time_s - b.time_s);
  const upTo = (time_s: number) => decoded.filter((token) => token.time_s <= time_s).length;
  const cuts = changes.map((change) => upTo(change.time_s));
  return cuts.map((cut) => {
    const from = Math.max(0, cut - TOKENS, ...cuts.filter((other) => other < cut));
    const to = Math.min(decoded.length, cut + TOKENS, ...cuts.filter((other) => other > cut));
    const before = decoded.slice(from, cut).map((token) => token.latency_s);
    const after = decoded.slice(cut, to).map((token) => token.latency_s);
    if (before.length === 0 || after.length === 0) return null;
    return { before_s: median(before), after_s: median(after), worst_s: Math.max(...after) };
  });
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
