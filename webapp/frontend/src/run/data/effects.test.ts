import { describe, expect, it } from 'vitest';
import { effectsOf } from './effects';
import type { Token } from './runData';

/** Tokens that follow each other after these latencies; the first one is the prompt's. */
function tokensOf(...latencies: number[]): Token[] {
  let time_s = 0;
  return latencies.map((latency_s, index) => {
    time_s += latency_s;
    return { request: 0, index, token: 1, text: '', latency_s, time_s };
  });
}
const change = (time_s: number) => ({ time_s, name: 'link_changed', label: '', by: '' });

describe('effectsOf', () => {
  it('compares the medians of the tokens before and after, without the first token', () => {
    const tokens = tokensOf(10, 1, 1, 3, 9, 4, 4); // the change is at 15, after three decoded tokens
    expect(effectsOf([change(15)], tokens)).toEqual([{ before_s: 1, after_s: 4, worst_s: 9 }]);
  });

  it('looks no further than the neighbouring changes', () => {
    const tokens = tokensOf(10, 1, 1, 5, 5, 2, 2);
    expect(effectsOf([change(12), change(22)], tokens)).toEqual([
      { before_s: 1, after_s: 5, worst_s: 5 },
      { before_s: 5, after_s: 2, worst_s: 2 },
    ]);
  });

  it('gives changes within one token the same effect, and none without tokens on both sides', () => {
    const tokens = tokensOf(10, 1, 1, 5, 5);
    const [one, other] = effectsOf([change(12.5), change(12.6)], tokens);
    expect(one).toEqual({ before_s: 1, after_s: 5, worst_s: 5 });
    expect(other).toEqual(one);
    expect(effectsOf([change(3), change(99)], tokens)).toEqual([null, null]);
  });
});
