import { describe, expect, it } from 'vitest';
import { DEVICE } from '@/api/fixtures';
import type { ClusterSpec, ModelRow, RunRequest, Workload } from '@/api/types';
import {
  drafts,
  draftsFor,
  FIRST_DRAFT,
  FIRST_WORK,
  firstCluster,
  firstDraft,
  fromRequest,
  missing,
  pairOf,
  toRequest,
  withWork,
  type Work,
} from './draft';

const model: ModelRow = {
  name: 'demo-lm',
  title: '',
  family: 'gpt2',
  num_layers: 6,
  hidden_size: 192,
  num_heads: 8,
  num_kv_heads: 8,
  num_parameters: 1,
  weight_bytes: 1,
  trained: true,
  causal: true,
  has_head: true,
  reads_text: true,
  vocab_size: 50,
  chats: false,
  image_rows: 0,
  num_classes: 0,
  max_positions: 512,
  source: '',
};
const draft = { ...FIRST_DRAFT, cluster_id: 3 };
const { prompt } = FIRST_WORK;

describe('a draft of a run', () => {
  it('names what is missing', () => {
    expect(missing(FIRST_DRAFT, model)).toContain('cluster');
    expect(missing(withWork(draft, { prompt: '  ' }), model)).toContain('prompt');
    const silent = withWork(draft, { prompt: '' });
    expect(missing({ ...silent, promptKind: 'length' }, model)).toBeNull();
    expect(missing(silent, { ...model, reads_text: false })).toBeNull();
  });

  it('asks for exactly one of prompt text and prompt length', () => {
    expect(toRequest(draft, model).workload).toMatchObject({ prompt });
    expect(toRequest(draft, model).workload).not.toHaveProperty('prompt_tokens');
    const counted = toRequest({ ...draft, promptKind: 'length' }, model).workload;
    expect(counted).toMatchObject({ prompt_tokens: 64 });
    expect(counted).not.toHaveProperty('prompt');
  });

  it('asks for the bits of the weights, and repeats them', () => {
    expect(toRequest(draft, model).weight_bits).toBeNull();
    const request = toRequest({ ...draft, weight_bits: 4 }, model);
    expect(request.weight_bits).toBe(4);
    expect(fromRequest(request).weight_bits).toBe(4);
    const whole = toRequest({ ...draft, weight_bits: 8, activation_bits: 8 }, model);
    expect(toRequest(fromRequest(whole), model)).toEqual(whole);
  });

  it('asks about strategies for the numbers that the run computes with', () => {
    const bits = { weight_bits: 8, activation_bits: 8 } as const;
    expect(pairOf({ ...draft, ...bits })).toMatchObject(bits);
  });

  it('asks for a draft model and how much of it is likely accepted, and repeats them', () => {
    expect(toRequest(draft, model)).toMatchObject({ draft_model: null, likely_acceptance: 0.7 });
    const request = toRequest({ ...draft, draft_model: 'small', likely_acceptance: 0.5 }, model);
    expect(request).toMatchObject({ draft_model: 'small', likely_acceptance: 0.5 });
    expect(fromRequest(request)).toMatchObject({ draft_model: 'small', likely_acceptance: 0.5 });
  });

  it('drafts with a second model, or with first layers where the chosen strategy has some', () => {
    const params = { speculative: { draft_layers: 2 } };
    expect(drafts({ ...draft, draft_model: 'small' })).toBe(true);
    expect(drafts({ ...draft, strategy: 'speculative' })).toBe(false);
    expect(drafts({ ...draft, params, strategy: 'speculative' })).toBe(true);
    expect(drafts({ ...draft, params, strategy: 'single' })).toBe(false);
  });

  it('lets smaller models draft that generate the same tokens', () => {
    const large = { ...model, name: 'large', num_parameters: 9 };
    const others = [
      { ...model, name: 'other tokens', vocab_size: 51 },
      { ...model, name: 'encoder', has_head: false },
      { ...model, name: 'sees', image_rows: 4 },
    ];
    expect(draftsFor([large, ...others, model], large)).toEqual([model]);
    expect(draftsFor([large, model], model)).toEqual([]);
    expect(draftsFor([large, model], { ...large, has_head: false })).toEqual([]);
  });

  it('begins with a model that answers questions, where one is here', () => {
    const answers = { ...model, name: 'answers', chats: true };
    expect(firstDraft([model, answers]).model).toBe('answers');
    expect(firstDraft([model, { ...answers, trained: false }])).toBe(FIRST_DRAFT);
    expect(toRequest(withWork(draft, { chat: false }), answers).workload).toMatchObject({ chat: false });
    expect(toRequest(draft, answers).workload).not.toHaveProperty('chat');
  });

  it('asks an encoder for no tokens and an untrained model for random weights', () => {
    const encoder = { ...model, has_head: false, trained: false };
    expect(toRequest(draft, encoder)).toMatchObject({ weights: 'random', workload: { new_tokens: 0 } });
    expect(toRequest(draft, model)).toMatchObject({ weights: null, workload: { new_tokens: 24 } });
  });

  it('runs the prompts of a file only with the model whose tokens they are', () => {
    const trace = [{ at_s: 0, prompt_tokens: 2, new_tokens: 4, tokens: [5, 6] }];
    const asked = { ...withWork(draft, { pattern: 'trace', trace }), tokensOf: 'demo-lm' };
    expect(missing(asked, model)).toBeNull();
    expect(missing({ ...asked, model: 'gpt2' }, { ...model, name: 'gpt2' })).toContain('tokens of demo-lm');
    expect(missing({ ...asked, randomWeights: true }, model)).toContain('tokens of demo-lm');
    expect(fromRequest(toRequest(asked, model)).tokensOf).toBe('demo-lm');
    const counted = withWork(asked, { trace: [{ ...trace[0]!, tokens: [] }] });
    expect(fromRequest(toRequest(counted, model)).tokensOf).toBeNull();
  });

  it('tells plans the length to assume, of a model that generates', () => {
    const unknown = withWork(draft, { assumed_tokens: 160 });
    expect(toRequest(unknown, model).workload).toMatchObject({ assumed_tokens: 160 });
    expect(fromRequest(toRequest(unknown, model)).workload.assumed_tokens).toBe(160);
    const encoder = { ...model, has_head: false };
    expect(toRequest(unknown, encoder).workload).not.toHaveProperty('assumed_tokens');
  });

  it('keeps the KV cache unless it is switched off, and encoders have none', () => {
    expect(toRequest(draft, model).workload).toMatchObject({ kv_cache: true });
    const without = withWork(draft, { kv_cache: false });
    expect(toRequest(without, model).workload).toMatchObject({ kv_cache: false });
    expect(fromRequest(toRequest(without, model)).workload.kv_cache).toBe(false);
    const encoder = { ...model, has_head: false };
    expect(toRequest(without, encoder).workload).not.toHaveProperty('kv_cache');
  });

  it('draws tokens at random above the temperature 0, of a model that generates', () => {
    const ways = { temperature: 0.7, top_p: 0.9, top_k: 40 };
    const sampled = withWork(draft, ways);
    expect(toRequest(sampled, model).workload).toMatchObject(ways);
    expect(fromRequest(toRequest(sampled, model)).workload).toMatchObject(ways);
    const greedy = withWork(sampled, { temperature: 0 });
    for (const [one, of] of [
      [greedy, model],
      [sampled, { ...model, has_head: false }],
    ] as const)
      expect(toRequest(one, of).workload).not.toHaveProperty('top_p');
  });

  it('gives a picture only to models that see, and text only to those that read', () => {
    const seen = withWork(draft, { image: 'PNG' });
    const classifier = { ...model, has_head: false, reads_text: false, image_rows: 197, num_classes: 1000 };
    expect(toRequest(seen, model).workload).not.toHaveProperty('image');
    expect(toRequest(seen, { ...model, image_rows: 576 }).workload).toMatchObject({ image: 'PNG', prompt });
    const { workload } = toRequest(seen, classifier);
    expect(workload).toMatchObject({ image: 'PNG', new_tokens: 0 });
    for (const field of ['prompt', 'prompt_tokens']) expect(workload).not.toHaveProperty(field);
    const request = toRequest(seen, classifier);
    expect(toRequest(fromRequest(request), classifier)).toEqual(request);
  });

  it('sends the parameters of the chosen strategy only', () => {
    const params = { voltage: { ratio: 'search' }, megatron: { all_reduce: 'star' } };
    expect(toRequest({ ...draft, params }, model).params).toEqual({ ratio: 'search' });
    expect(toRequest({ ...draft, params, strategy: 'single' }, model).params).toEqual({});
  });

  it('leaves links of boards as the network is only where every device is a board', () => {
    const [all, some] = [
      ['a', 'b'],
      ['', 'b'],
    ].map(
      (nodes) =>
        ({ devices: nodes.map((node) => ({ ...DEVICE, name: 'x', node })) }) as unknown as ClusterSpec,
    );
    const given = { ...draft, dilationKind: 'nodes', board_links: 'given' } as const;
    expect(toRequest(given, model, all)).toMatchObject({ board_links: 'given' });
    expect(toRequest(given, model, some)).not.toHaveProperty('board_links');
    expect(toRequest({ ...given, cluster: some! }, model)).not.toHaveProperty('board_links');
  });

  it('repeats an earlier request exactly', () => {
    const request: RunRequest = toRequest(
      {
        ...draft,
        dilationKind: 'fixed',
        dilation: 4,
        seed: 7,
        name: 'a',
        notes: 'b',
        compute_model: 'flops',
        params: { voltage: { gather: 'ring' } },
      },
      model,
    );
    expect(toRequest(fromRequest(request), model)).toEqual(request);
  });

  it('starts with the cluster asked for, else with the demo cluster', () => {
    const clusters = [
      { id: 1, name: 'mine' },
      { id: 2, name: 'lab-3' },
    ];
    expect(firstCluster(clusters, 1)).toBe(1);
    expect(firstCluster(clusters, 9)).toBe(2);
    expect(firstCluster([{ id: 5, name: 'x' }], null)).toBe(5);
    expect(firstCluster([], null)).toBeNull();
  });

  it.each<[Partial<Work>, Partial<Workload>]>([
    [{}, { pattern: 'sporadic' }],
    [{ pattern: 'poisson', rate_per_s: 3 }, { max_batch: 4 }],
    [{ pattern: 'users', users: 2, think_s: 1, max_batch: 1, slo_first_token_s: 0.5 }, {}],
    [{ pattern: 'poisson', scheduler: 'chunked', chunk_tokens: 32 }, {}],
    [{ pattern: 'serve', scheduler: 'auto', queue_limit: 7 }, { max_batch: 4 }],
  ])('asks for arrivals %o', (chosen, fields) => {
    const asked = withWork(FIRST_DRAFT, chosen);
    const { workload } = toRequest(asked, undefined);
    expect(workload).toMatchObject({ ...chosen, ...fields });
    expect(workload).not.toHaveProperty(chosen.pattern === 'poisson' ? 'users' : 'rate_per_s');
    expect(fromRequest(toRequest(asked, undefined)).workload).toMatchObject(chosen);
  });

  it('takes the sizes from the trace, where there is one', () => {
    const trace = [{ at_s: 0, prompt_tokens: 8, new_tokens: 4 }];
    const asked = withWork(FIRST_DRAFT, { pattern: 'trace', trace });
    const { workload } = toRequest(asked, undefined);
    expect(workload).toMatchObject({ pattern: 'trace', trace });
    for (const field of ['prompt', 'prompt_tokens', 'new_tokens', 'requests'])
      expect(workload).not.toHaveProperty(field);
    const empty = { ...withWork(asked, { trace: [] }), cluster_id: 1 };
    expect(missing(empty, undefined)).toBe('Choose the file of the requests.');
  });
});
