import { describe, expect, it } from 'vitest';
import type { RunReport } from '@/api/types';
import { textOf } from '@/run/data/tokens';
import { reportTokens } from './reportTokens';

function requestOf(index: number, text: string, output_tokens: number[], token_s: number[]) {
  return { index, text, output_tokens, token_s, arrival_s: 10 } as unknown as RunReport['requests'][number];
}

describe('the tokens of a report without events', () => {
  it('are as many per request as it generated, with the times of each', () => {
    const tokens = reportTokens({
      requests: [requestOf(0, 'a cat', [4, 5, 6], [1, 1.5, 2.5]), requestOf(1, 'no', [7], [3])],
    });
    expect(
      tokens.map(({ request, index, latency_s, time_s }) => [request, index, latency_s, time_s]),
    ).toEqual([
      [0, 0, 1, 11],
      [0, 1, 0.5, 11.5],
      [0, 2, 1, 12.5],
      [1, 0, 3, 13],
    ]);
  });

  it('have the whole text once, and are shown by their numbers without one', () => {
    const shown = (text: string, ids: number[]) =>
      reportTokens({ requests: [requestOf(0, text, ids, [1, 2])] })
        .map(textOf)
        .join('')
        .replaceAll('\u200b', '');
    expect(shown('a cat', [4, 5])).toBe('a cat');
    expect(shown('', [4, 5])).toBe(' 4 5');
    expect(shown('', [])).toBe(' ▢ ▢');
  });
});
