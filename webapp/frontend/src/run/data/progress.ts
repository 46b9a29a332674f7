/** How far a run is, and how it compares with its prediction so far. */
import type { RunReport } from '@/api/types';
import type { Token } from './runData';

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

export function predictedTokens(prediction: RunReport | null): PredictedToken[] {
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

/** `dilation`: wall seconds per virtual second. */
export function progressOf(
  tokens: readonly Token[],
  predicted: readonly PredictedToken[],
  expected: number,
  time_s: number,
  dilation: number | null,
): Progress {
  const last = tokens.at(-1);
  const first = tokens.find((token) => token.index === 0);
  const counterpart = predicted[tokens.length - 1];
  const ratio = last && counterpart && counterpart.time_s > 0 ? last.time_s / counterpart.time_s : null;
  const end_s = predicted.at(-1)?.time_s;
  const left_s = leftOf(tokens, expected, time_s, end_s === undefined ? null : end_s * (ratio ?? 1));
  return {
    tokens: tokens.length,
    firstToken_s: first?.latency_s ?? null,
    tokensPer_s: last && last.time_s > 0 ? tokens.length / last.time_s : null,
    againstPrediction: ratio,
    left_s,
    wallLeft_s: left_s === null || dilation === null ? null : left_s * dilation,
  };
}

/** By the prediction, stretched as the run has been so far; without one by the mean time of a token. */
function leftOf(
  tokens: readonly Token[],
  expected: number,
  time_s: number,
  end_s: number | null,
): number | null {
  if (end_s !== null) return Math.max(end_s - time_s, 0);
  if (tokens.length < 2 || tokens.length >= expected) return null;
  return ((expected - tokens.length) * (tokens.at(-1)!.time_s - tokens[0]!.time_s)) / (tokens.length - 1);
}
