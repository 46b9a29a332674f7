/** Small clusters and spans for tests. */
import { DEVICE } from '@/api/fixtures';
import type { ClusterSpec, DeviceSpec, ModelSpec, RunEvent, Span } from '@/api/types';

export const device = (name: string): DeviceSpec => ({ ...DEVICE, name, disk_byte_per_s: 2e8 });

export const cluster: ClusterSpec = {
  name: 'pair',
  title: '',
  description: '',
  source: 'a',
  switches: [],
  devices: [device('a'), device('b')],
  links: [
    {
      a: 'a',
      b: 'b',
      bit_per_s: 1e8,
      reverse_bit_per_s: null,
      delay_s: 0,
      jitter_s: 0,
      loss_frac: 0,
      reverse_delay_s: null,
      reverse_loss_frac: null,
      parallel: 1,
      j_per_byte: 0,
    },
  ],
};

export const model: ModelSpec = {
  name: 'tiny',
  family: 'gpt2',
  num_layers: 2,
  hidden_size: 8,
  num_heads: 4,
  num_kv_heads: 4,
  head_dim: 2,
  intermediate_size: 32,
  vocab_size: 64,
  max_positions: 64,
  dtype: 'float32',
  weight_bits: 0,
  causal: true,
  norm: 'layernorm',
  norm_eps: 1e-5,
  norm_position: 'pre',
  norm_adds_one: false,
  sublayer_norm: false,
  positions: 'learned',
  position_offset: 0,
  rope_theta: 10000,
  rope_scaling: null,
  partial_rotary_factor: 1,
  layers_without_rope: [],
  sliding_window: null,
  query_pre_attn_scalar: null,
  attention_multiplier: null,
  residual_multiplier: 1,
  logits_scaling: 1,
  score_softcap: null,
  logit_softcap: null,
  qk_norm: false,
  qk_norm_over_heads: false,
  activation: 'gelu_new',
  gated_ffn: false,
  attention_bias: true,
  attention_sinks: false,
  swiglu_limit: null,
  swiglu_alpha: 1.702,
  output_bias: true,
  ffn_bias: true,
  num_experts: 0,
  experts_per_token: 0,
  norm_topk_prob: true,
  shared_intermediate_size: 0,
  shared_expert_gate: false,
  likely_experts: 0,
  expert_load: [],
  token_types: 0,
  embedding_norm: false,
  embedding_scale: null,
  tied_head: true,
  has_head: true,
  vision: null,
  num_classes: 0,
  source: '',
};

export function span(fields: Partial<Span> = {}): { type: 'span' } & Span {
  return {
    type: 'span',
    device: 'a',
    kind: 'compute',
    name: 'attention',
    layer: 0,
    start_s: 0,
    end_s: 1,
    bytes: 0,
    payload_bytes: 0,
    flops: 0,
    peer: '',
    request: 0,
    token: 0,
    message: -1,
    ...fields,
  };
}

const REALS = ['start_s', 'end_s', 'bytes', 'payload_bytes', 'flops'] as const;
const INTEGERS = ['layer', 'request', 'token', 'message'] as const;
const TEXTS = ['device', 'kind', 'name', 'peer'] as const;

/** The events as a chunk, after the description in `webapp/events/columns.py`. */
export function encoded(events: readonly RunEvent[], cursor: string): ArrayBuffer {
  const spans: Span[] = [];
  const others: [RunEvent, number][] = [];
  for (const event of events) {
    if (event.type === 'span') spans.push(event);
    else others.push([event, spans.length]);
  }
  const names = [...new Set(spans.flatMap((one) => TEXTS.map((field) => one[field])))];
  let head = JSON.stringify({ cursor, spans: spans.length, names, others });
  const bytes = () => new TextEncoder().encode(head);
  while ((4 + bytes().length) % 8 !== 0) head += ' ';
  const columns = [
    new Uint8Array(Uint32Array.of(bytes().length).buffer),
    bytes(),
    ...REALS.map((field) => new Uint8Array(Float64Array.from(spans, (one) => one[field]).buffer)),
    ...INTEGERS.map((field) => new Uint8Array(Int32Array.from(spans, (one) => one[field]).buffer)),
    ...TEXTS.map(
      (field) => new Uint8Array(Int32Array.from(spans, (one) => names.indexOf(one[field])).buffer),
    ),
  ];
  const chunk = new Uint8Array(columns.reduce((sum, column) => sum + column.length, 0));
  let at = 0;
  for (const column of columns) {
    chunk.set(column, at);
    at += column.length;
  }
  return chunk.buffer;
}
