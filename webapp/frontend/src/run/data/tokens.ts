/** Tokens as text, and as columns of a chart. */
import type { RunSpec } from '@/api/types';
import type { Token } from './runData';

/** A token's text, or its number if the model has no tokenizer. */
export function textOf(token: Token): string {
  if (token.text !== '') return token.text;
  return token.token >= 0 ? ` ${token.token}` : ' ▢';
}

export function requestsOf(tokens: readonly Token[]): number[] {
  return [...new Set(tokens.map((token) => token.request))].toSorted((a, b) => a - b);
}

export function promptText(spec: RunSpec): string {
  return spec.workload.prompt ?? `⟨random prompt of ${spec.workload.prompt_tokens} tokens⟩ `;
}

/** Columns of a chart of latency over virtual time: x, then one line per request. */
export function latencyColumns(
  tokens: readonly Token[],
  requests: readonly number[],
  firstToo: boolean,
): [number[], ...(number | null)[][]] {
  const shown = tokens
    .filter((token) => (firstToo || token.index > 0) && requests.includes(token.request))
    .toSorted((a, b) => a.time_s - b.time_s);
  const lines = requests.map((request) =>
    shown.map((token) => (token.request === request ? token.latency_s : null)),
  );
  return [shown.map((token) => token.time_s), ...lines];
}

/** Mean seconds per token after the first ones; NaN before there is a second token. */
export function meanDecode_s(tokens: readonly Token[]): number {
  const later = tokens.filter((token) => token.index > 0);
  return later.length === 0 ? NaN : later.reduce((sum, token) => sum + token.latency_s, 0) / later.length;
}
