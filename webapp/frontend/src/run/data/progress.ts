/** How far a run is, and how it compares with its prediction so far. */
import type { RestPredicted, RunReport } from '@/api/types';
import type { Injection } from './marks';
import type { Token } from './tokenLog';

/** A token of the prediction: when it comes, and the seconds since the one before it. */
export interface PredictedToken {
  time_s: number;
  latency_s: number;
  request: number;
  index: number;
}

export interface Progress {
  tokens: number;
  firstToken_s: number | null;
  tokensPer_s: number | null;
  /** Time of the newest token over the time at which the prediction has as many; null before the first. */
  againstPrediction: number | null;
  /** Virtual and wall seconds that the run still takes if it goes on like this; null if not known. */
  left_s: number | null;
  wallLeft_s: number | null;
}

/** A prediction that was made while the run went on, after a change of the cluster. */
export interface Rest {
  at_s: number;
  tokens: PredictedToken[];
}

export function restOf(event: RestPredicted): Rest {
  return { at_s: event.at_s, tokens: predictedTokens(event) };
}

/** What was predicted for each time: before the start, and after a change what was predicted from there on. */
export function predictedAlong(before: readonly PredictedToken[], rests: readonly Rest[]): PredictedToken[] {
  const parts = [{ at_s: 0, tokens: before }, ...rests];
  return parts.flatMap(({ at_s, tokens }, part) => {
    const until_s = parts[part + 1]?.at_s ?? Infinity;
    return tokens.filter(({ time_s }) => time_s > at_s && time_s <= until_s);
  });
}

export function predictedTokens(prediction: Pick<RunReport, 'requests'> | null): PredictedToken[] {
  return (prediction?.requests ?? [])
    .flatMap(({ arrival_s, token_s, index: request }) =>
      token_s.map((since_s, index) => ({
        time_s: arrival_s + since_s,
        latency_s: since_s - (token_s[index - 1] ?? 0),
        request,
        index,
      })),
    )
    .toSorted((a, b) => a.time_s - b.time_s);
}

/** How far a run is. `predicted`: before the start, `rests` from there on; `dilation`: wall seconds per virtual second. */
export function progressOf(
  tokens: readonly Token[],
  predicted: readonly PredictedToken[],
  rests: readonly Rest[],
  changes: readonly Pick<Injection, 'time_s' | 'by'>[],
  expected: number,
  time_s: number,
  dilation: number | null,
): Progress {
  const last = tokens.at(-1);
  const first = tokens.find((token) => token.index === 0);
  const counterpart = predicted[tokens.length - 1];
  const ratio = last && counterpart && counterpart.time_s > 0 ? last.time_s / counterpart.time_s : null;
  const changed_s = changes.at(-1)?.time_s ?? 0;
  const unknown_s = changes.findLast(({ by }) => by !== '')?.time_s ?? 0;
  const rest = rests.at(-1);
  const knows = rest ? rest.at_s >= unknown_s : unknown_s === 0;
  const left_s = leftOf(tokens, rest?.tokens ?? predicted, knows, expected, time_s, changed_s);
  return {
    tokens: tokens.length,
    firstToken_s: first?.latency_s ?? null,
    tokensPer_s: last && last.time_s > 0 ? tokens.length / last.time_s : null,
    againstPrediction: ratio,
    left_s,
    wallLeft_s: left_s === null || dilation === null ? null : left_s * dilation,
  };
}

/**
 * What is left of the prediction, stretched by the tokens since the last change; without a prediction by their mean
 * time. After a change a prediction that `knows` all of them stands as it is; without one there is nothing to tell until
 * a token was begun and came since then.
 */
function leftOf(
  tokens: readonly Token[],
  predicted: readonly PredictedToken[],
  knows: boolean,
  expected: number,
  time_s: number,
  changed_s: number,
): number | null {
  const last = tokens.at(-1);
  const end_s = predicted.at(-1)?.time_s;
  if (!last) return end_s === undefined || !knows ? null : Math.max(end_s - time_s, 0);
  const reached_s = predicted[Math.min(tokens.length, predicted.length) - 1]?.time_s;
  const asItIs_s =
    knows && end_s !== undefined && reached_s !== undefined
      ? Math.max(end_s - reached_s - (time_s - last.time_s), 0)
      : null;
  if (changed_s > 0 && asItIs_s !== null) return asItIs_s;
  if (changed_s > 0 && last.time_s <= changed_s) return null;
  const from = Math.max(startOf(tokens, changed_s), end_s === undefined ? 0 : -1);
  const took_s = last.time_s - (from < 0 ? 0 : tokens[from]!.time_s);
  const later = tokens.length - 1 - from;
  const at_s = reached_s ?? 0;
  const span_s = at_s - (from < 0 ? 0 : (predicted[from]?.time_s ?? at_s));
  if (later === 0 || (end_s !== undefined && span_s <= 0)) return asItIs_s;
  const left_s =
    end_s === undefined ? (took_s / later) * (expected - tokens.length) : (took_s / span_s) * (end_s - at_s);
  return Math.max(left_s - (time_s - last.time_s), 0);
}

/** The token from which on the run goes as it goes now; -1: its start. The one before it began before the change. */
function startOf(tokens: readonly Token[], changed_s: number): number {
  return changed_s <= 0 ? -1 : tokens.findIndex((token) => token.time_s > changed_s);
}
