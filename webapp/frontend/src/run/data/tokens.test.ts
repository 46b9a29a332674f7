import { describe, expect, it } from 'vitest';
import type { Token } from './runData';
import { latencyColumns, meanDecode_s, requestsOf, textOf } from './tokens';

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
