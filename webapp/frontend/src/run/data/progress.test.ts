import { describe, expect, it } from 'vitest';
import type { RunReport } from '@/api/types';
import { predictedAlong, predictedTokens, progressOf, type Rest } from './progress';
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

const change = (time_s: number, by = 'ann') => [{ time_s, by }];

describe('predictedAlong', () => {
  it('is what was predicted last for each time', () => {
    const rest = (at_s: number, times: number[]): Rest => ({
      at_s,
      tokens: times.map((time_s, index) => ({ time_s, latency_s: 1, request: 0, index })),
    });
    const before = predictedTokens(prediction);
    const along = predictedAlong(before, [rest(3.5, [3, 5, 7, 9]), rest(6, [3, 5, 6.5])]);
    expect(along.map(({ time_s }) => time_s)).toEqual([3, 5, 6.5]);
    expect(predictedAlong(before, [])).toEqual(before);
  });
});

describe('progressOf', () => {
  it('stretches what is left of the prediction by how late the run is', () => {
    // Two tokens at 8 s where the prediction has them at 4 s: the end at 6 s becomes 12 s, 3 s from now.
    const found = progressOf([token(0, 6), token(1, 8)], predictedTokens(prediction), [], [], 4, 9, 10);
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
    const found = progressOf([], predictedTokens(prediction), [], [], 4, 0, 25);
    expect(found).toMatchObject({ tokens: 0, againstPrediction: null, left_s: 6, wallLeft_s: 150 });
  });

  it('goes by the tokens so far without a prediction', () => {
    expect(progressOf([token(0, 6), token(1, 8)], [], [], [], 4, 8, null)).toMatchObject({
      left_s: 4,
      wallLeft_s: null,
    });
    expect(progressOf([token(0, 6)], [], [], [], 4, 8, 2).left_s).toBeNull();
  });

  it('goes without a new prediction by the tokens since the last change, and says nothing before one came', () => {
    // Predicted at 3, 4, 5, 6 s. The change at 4.5 s makes tokens take 10 s instead of 1 s.
    const before = [token(0, 3), token(1, 4)];
    const left = (tokens: Token[], time_s: number) =>
      progressOf(tokens, predictedTokens(prediction), [], change(4.5), 5, time_s, 2).left_s;
    expect(left(before, 5)).toBeNull();
    expect(left([...before, token(2, 5)], 6)).toBeNull(); // it began before the change
    const longer = predictedTokens({
      requests: [{ index: 0, arrival_s: 1, token_s: [2, 3, 4, 5, 6] }],
    } as unknown as RunReport);
    const after = [...before, token(2, 15), token(3, 25)];
    expect(progressOf(after, longer, [], change(4.5), 5, 25, 2)).toMatchObject({
      left_s: 10,
      wallLeft_s: 20,
    });
    expect(progressOf(after, longer, [], change(4.5), 5, 28, 2).left_s).toBe(7);
    expect(progressOf(after, [], [], change(4.5), 5, 25, 2).left_s).toBe(10);
  });

  it('goes by the prediction from here on as soon as that knows the last change', () => {
    // Undisturbed the tokens come at 3, 4, 5, 6 s; with the change at 4.5 s the last two at 15 and 25 s.
    const before = predictedTokens(prediction);
    const rest: Rest = {
      at_s: 4.6,
      tokens: [3, 4, 15, 25].map((time_s, index) => ({ time_s, latency_s: 1, request: 0, index })),
    };
    const tokens = [token(0, 3), token(1, 4)];
    const left = (changed_s: number, by = 'ann') =>
      progressOf(tokens, before, [rest], change(changed_s, by), 4, 5, 2);
    expect(left(4.5)).toMatchObject({ left_s: 20, wallLeft_s: 40, againstPrediction: 1 });
    expect(left(4.8).left_s).toBeNull(); // a later change, which it does not know
    expect(left(4.8, '').left_s).toBe(20); // one that the scenario announced
    const late = [...tokens, token(2, 15.5)];
    expect(progressOf(late, before, [rest], change(4.5), 4, 16, 2).left_s).toBeCloseTo(9.5);
    expect(progressOf([], before, [], change(1, ''), 4, 2, 2).left_s).toBe(4);
  });
});
