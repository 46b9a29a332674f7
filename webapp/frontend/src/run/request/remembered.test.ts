import { describe, expect, it } from 'vitest';
import { FIRST_DRAFT, withWork } from './draft';
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

  it('of an older version get the defaults of newer fields', () => {
    const kept = store({ 'edgeloom-last-request': '{"strategy": "gpipe", "workload": {"new_tokens": 3}}' });
    expect(remembered(known, kept)).toEqual({
      ...withWork(FIRST_DRAFT, { new_tokens: 3 }),
      strategy: 'gpipe',
    });
  });
});
