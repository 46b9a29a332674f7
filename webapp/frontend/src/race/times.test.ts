import { describe, expect, it } from 'vitest';
import type { RunReport, RunRequest } from '@/api/types';
import { laneOf, PREDICTED_TOKENS, racing, tokensAt } from './times';

const report = (token_s: number[]) => ({ requests: [{ token_s }] }) as unknown as RunReport;

describe('a lane of a race', () => {
  it('goes on as the predicted tokens came', () => {
    expect(laneOf(report([2, 2.5, 3]), 11)).toEqual({ first_s: 2, each_s: 0.5, end_s: 7 });
  });

  it('has as many tokens as have come, and never more than are asked for', () => {
    const lane = { first_s: 2, each_s: 0.5, end_s: 7 };
    expect([1.9, 2, 2.6, 99].map((time_s) => tokensAt(lane, time_s, 11))).toEqual([0, 1, 2, 11]);
  });

  it('has all tokens at its end, however its times are rounded', () => {
    for (let part = 1; part < 500; part += 1) {
      const lane = laneOf(report([0.37 / part, 0.37 / part + 0.1031 / part]), 96)!;
      expect(tokensAt(lane, lane.end_s, 96)).toBe(96);
    }
  });

  it('is none where no token was predicted', () => {
    expect(laneOf(report([]), 11)).toBeNull();
  });
});

it('both methods race on the same links, with their own parameters', () => {
  const links = [{ a: 'x', b: 'y', bit_per_s: 1e8, reverse_bit_per_s: 5e7, delay_s: 1e-3 }];
  const request = {
    strategy: 'lime',
    params: { slots: 2 },
    workload: { prompt: 'Why?', new_tokens: 160 },
    cluster: { links },
  } as unknown as RunRequest;
  const [own, other] = ['lime', 'megatron'].map((strategy) => racing(request, strategy, 1e6));
  expect(own?.cluster?.links).toEqual([{ ...links[0], bit_per_s: 1e6, reverse_bit_per_s: null }]);
  expect(other?.cluster).toEqual(own?.cluster);
  expect([own?.params, other?.params]).toEqual([{ slots: 2 }, {}]);
  expect(other?.workload).toEqual({ prompt: 'Why?', new_tokens: PREDICTED_TOKENS });
});
