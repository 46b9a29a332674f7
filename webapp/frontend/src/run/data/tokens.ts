/** Tokens as text, and as columns of a chart. */
import type { RunSpec } from '@/api/types';
import type { Token } from './runData';
import type { ServedRequest } from './service';

/** A token's text, or its number if the model has no tokenizer. */
export function textOf(token: Token): string {
  if (token.text !== '') return token.text;
  return token.token >= 0 ? ` ${token.token}` : ' ▢';
}

export function requestsOf(tokens: readonly Token[]): number[] {
  return [...new Set(tokens.map((token) => token.request))].toSorted((a, b) => a - b);
}

/** How a request's prompt is shown, and how many tokens its answer has at most. `served` are the requests that people
 * sent while the run went on. */
export function requestOf(
  { workload }: RunSpec,
  request: number,
  served: readonly ServedRequest[] = [],
): { prompt: string; newTokens: number } {
  const sent = served.find((one) => one.request === request);
  if (sent) return { prompt: sent.prompt, newTokens: sent.newTokens };
  const { prompt_tokens, new_tokens } = workload.trace?.[request] ?? workload;
  if (workload.prompt !== null && workload.prompt !== undefined)
    return { prompt: workload.prompt, newTokens: new_tokens };
  const prompt = workload.pattern === 'serve' ? 'prompt' : `random prompt of ${prompt_tokens} tokens`;
  return { prompt: `⟨${prompt}⟩ `, newTokens: new_tokens };
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
