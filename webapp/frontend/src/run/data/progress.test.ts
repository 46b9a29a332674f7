import { describe, expect, it } from 'vitest';
import type { RunReport } from '@/api/types';
import { predictedTokens, progressOf } from './progress';
import type { Token } from './runData';

const prediction = {
  requests: [{ index: 0, arrival_s: 1, token_s: [2, 3, 4, 5] }],
} as unknown as RunReport;
const token = (index: number, time_s: number): Token => ({
  request: 0,
  index,
  token: 1,
  text: '',
  latency_s: index === 0 ? 4 : 2,
  time_s,
});

describe('predictedTokens', () => {
  it('are at their times, with the seconds since the token before', () => {
    expect(predictedTokens(prediction).map(({ time_s, latency_s }) => [time_s, latency_s])).toEqual([
      [3, 2],
      [4, 1],
      [5, 1],
      [6, 1],
    ]);
    expect(predictedTokens(null)).toEqual([]);
  });
});

describe('progressOf', () => {
  it('stretches what is left of the prediction by how late the run is', () => {
    // Two tokens at 8 s where the prediction has them at 4 s: the end at 6 s becomes 12 s, 3 s from now.
    const found = progressOf([token(0, 6), token(1, 8)], predictedTokens(prediction), 4, 9, 0, 10);
    expect(found).toEqual({
      tokens: 2,
      firstToken_s: 4,
      tokensPer_s: 0.25,
      againstPrediction: 2,
      left_s: 3,
      wallLeft_s: 30,
    });
  });

  it('has the whole prediction left before the first token', () => {
    const found = progressOf([], predictedTokens(prediction), 4, 0, 0, 25);
    expect(found).toMatchObject({ tokens: 0, againstPrediction: null, left_s: 6, wallLeft_s: 150 });
  });

  it('goes by the tokens so far without a prediction', () => {
    expect(progressOf([token(0, 6), token(1, 8)], [], 4, 8, 0, null)).toMatchObject({
      left_s: 4,
      wallLeft_s: null,
    });
    expect(progressOf([token(0, 6)], [], 4, 8, 0, 2).left_s).toBeNull();
  });

  it('goes by the tokens since the last change, and says nothing before one came', () => {
    // Predicted at 3, 4, 5, 6 s. The change at 4.5 s makes tokens take 10 s instead of 1 s.
    const before = [token(0, 3), token(1, 4)];
    const left = (tokens: Token[], time_s: number) =>
      progressOf(tokens, predictedTokens(prediction), 5, time_s, 4.5, 2).left_s;
    expect(left(before, 5)).toBeNull();
    expect(left([...before, token(2, 5)], 6)).toBeNull(); // it began before the change
    const longer = predictedTokens({
      requests: [{ index: 0, arrival_s: 1, token_s: [2, 3, 4, 5, 6] }],
    } as unknown as RunReport);
    const after = [...before, token(2, 15), token(3, 25)];
    expect(progressOf(after, longer, 5, 25, 4.5, 2)).toMatchObject({ left_s: 10, wallLeft_s: 20 });
    expect(progressOf(after, longer, 5, 28, 4.5, 2).left_s).toBe(7);
    expect(progressOf(after, [], 5, 25, 4.5, 2).left_s).toBe(10);
  });
});
