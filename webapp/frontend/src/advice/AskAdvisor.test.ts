import { expect, it } from 'vitest';
import { isStillAsked } from './AskAdvisor';
import type { Ask } from './useQuestion';

const base = {
  cluster_id: 3,
  model: 'demo-lm',
  by: 'total_s' as const,
  answer: true,
  workload: { new_tokens: 24 },
};
const asked: Ask = { ...base, answer: false, question: 'buy', tokens_per_s: 10 };

it('knows an answer to what was asked before the cluster, the model, the workload or the goal changed', () => {
  expect(isStillAsked(asked, { ...base })).toBe(true);
  expect(isStillAsked(asked, { ...base, cluster_id: 4 })).toBe(false);
  expect(isStillAsked(asked, { ...base, model: 'gpt2' })).toBe(false);
  expect(isStillAsked(asked, { ...base, workload: { new_tokens: 25 } })).toBe(false);
  expect(isStillAsked(asked, { ...base, by: 'per_token_s' })).toBe(false);
  expect(isStillAsked(asked, null)).toBe(false);
});
