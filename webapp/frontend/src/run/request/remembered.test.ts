import { describe, expect, it } from 'vitest';
import { FIRST_DRAFT, toRequest, withWork } from './draft';
import { forget, remember, remembered } from './remembered';

function store(content: Record<string, string> = {}) {
  const kept = new Map(Object.entries(content));
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  };
}
const known = { models: [{ name: 'demo-lm' }], strategies: [{ name: 'gpipe' }] };

describe('the choices of the last run', () => {
  it('come back without what belonged to that run alone', () => {
    const kept = store();
    remember(
      {
        ...withWork(FIRST_DRAFT, { new_tokens: 5 }),
        strategy: 'gpipe',
        cluster_id: 7,
        params: { gpipe: { micro_batches: 2, plan: { devices: [] } } },
        scenario: { changes: [{ kind: 'link_down', at_s: 1, link: 'a--b' }] },
        name: 'the first',
        notes: 'to be kept',
        tags: ['t'],
      },
      kept,
    );
    const draft = remembered(known, kept)!;
    expect(draft).toMatchObject({ strategy: 'gpipe', cluster_id: 7, name: '', tags: [] });
    expect(draft.workload.new_tokens).toBe(5);
    expect(draft.params).toEqual({ gpipe: { micro_batches: 2 } });
    expect(draft.scenario.changes).toEqual([]);
    forget(kept);
    expect(remembered(known, kept)).toBeNull();
  });

  it('are not used if their strategy is gone or they cannot be read', () => {
    const kept = store();
    remember({ ...FIRST_DRAFT, strategy: 'gone' }, kept);
    expect(remembered(known, kept)).toBeNull();
    expect(remembered(known, store({ 'edgeloom-last-request': '{' }))).toBeNull();
    expect(remembered(known, store({ 'edgeloom-last-request': '3' }))).toBeNull();
  });

  it('of the version with names of its own make a request of the fields that there are', () => {
    const older = `{"clusterId": 3, "frozen": null, "model": "demo-lm", "randomWeights": false, "weightBits": 8,
      "draftModel": null, "likelyAcceptance": 0.7, "strategy": "gpipe", "params": {"gpipe": {"micro_batches": 2}},
      "promptKind": "text", "prompt": "Why?", "chat": true, "promptTokens": 64, "image": null, "newTokens": 24,
      "assumedTokens": 0, "kvCache": true, "sampling": {"temperature": 1, "topP": 1, "topK": 0}, "requests": 1,
      "arrivals": {"pattern": "users", "ratePerSecond": 1, "users": 4, "think_s": 0, "maxBatch": 4,
      "scheduler": "fcfs", "chunkTokens": 64, "trace": [], "tokensOf": null, "firstToken_s": null,
      "perToken_s": null}, "scenario": {"changes": []}, "dilationKind": "fixed", "dilation": 4,
      "computeModel": null, "failover": "stop", "silence_s": 2, "tokenLimit_s": null, "seed": 7, "name": "",
      "notes": "", "tags": []}`;
    const draft = remembered(known, store({ 'edgeloom-last-request': older }))!;
    const chosen = {
      strategy: 'gpipe',
      params: { gpipe: { micro_batches: 2 } },
      failover: 'stop',
      seed: 7,
    } as const;
    expect(toRequest(draft, undefined)).toEqual(
      toRequest({ ...FIRST_DRAFT, ...chosen, dilationKind: 'fixed', dilation: 4 }, undefined),
    );
  });

  it('of an older version get the defaults of newer fields', () => {
    const kept = store({ 'edgeloom-last-request': '{"strategy": "gpipe", "workload": {"new_tokens": 3}}' });
    expect(remembered(known, kept)).toEqual({
      ...withWork(FIRST_DRAFT, { new_tokens: 3 }),
      strategy: 'gpipe',
    });
  });
});
