import { describe, expect, it } from 'vitest';
import type { RunSpec } from '@/api/types';
import type { Token } from './runData';
import type { ServedRequest } from './service';
import { latencyColumns, meanDecode_s, requestOf, requestsOf, textOf } from './tokens';

const token = (request: number, index: number, time_s: number, latency_s: number, text = ''): Token => ({
  request,
  index,
  token: 40 + index,
  text,
  latency_s,
  time_s,
});
const tokens = [token(1, 0, 3, 3), token(0, 0, 1, 1), token(0, 1, 2, 0.5), token(0, 2, 4, 0.25)];

describe('tokens', () => {
  it('show their text, else their number, else a box', () => {
    expect(textOf(token(0, 0, 0, 0, ' the'))).toBe(' the');
    expect(textOf(token(0, 2, 0, 0))).toBe(' 42');
    expect(textOf({ ...token(0, 0, 0, 0), token: -1 })).toBe(' ▢');
  });

  it('follow their request’s prompt, which may be of the workload, of its trace or of who sent it', () => {
    const of = (workload: object) => ({ workload }) as unknown as RunSpec;
    const plain = of({ prompt: 'When a', new_tokens: 9 });
    expect(requestOf(plain, 0)).toEqual({ prompt: 'When a', newTokens: 9 });
    const trace = [
      { prompt_tokens: 4, new_tokens: 2 },
      { prompt_tokens: 6, new_tokens: 3 },
    ];
    const traced = of({ pattern: 'trace', prompt: null, prompt_tokens: 6, new_tokens: 3, trace });
    expect(requestOf(traced, 0)).toEqual({ prompt: '⟨random prompt of 4 tokens⟩ ', newTokens: 2 });
    const serves = of({ pattern: 'serve', prompt: null, prompt_tokens: 64, new_tokens: 24 });
    const sent = { request: 1, prompt: 'The with', newTokens: 5 } as ServedRequest;
    expect(requestOf(serves, 1, [sent])).toEqual({ prompt: 'The with', newTokens: 5 });
    expect(requestOf(serves, 0, [sent])).toEqual({ prompt: '⟨prompt⟩ ', newTokens: 24 });
  });

  it('belong to requests, in order of their numbers', () => {
    expect(requestsOf(tokens)).toEqual([0, 1]);
  });

  it('make one column of times and one of latencies per request', () => {
    expect(latencyColumns(tokens, [0, 1], true)).toEqual([
      [1, 2, 3, 4],
      [1, 0.5, null, 0.25],
      [null, null, 3, null],
    ]);
    expect(latencyColumns(tokens, [0], false)).toEqual([
      [2, 4],
      [0.5, 0.25],
    ]);
  });

  it('have a mean decode latency without the first token of a request', () => {
    expect(meanDecode_s(tokens)).toBe(0.375);
    expect(meanDecode_s(tokens.slice(0, 2))).toBeNaN();
  });
});
