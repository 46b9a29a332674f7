/** Small clusters and spans for tests. */
import { DEVICE } from '@/api/fixtures';
import type { ClusterSpec, DeviceSpec, ModelSpec, Span } from '@/api/types';

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
  score_softcap: null,
  logit_softcap: null,
  qk_norm: false,
  activation: 'gelu_new',
  gated_ffn: false,
  attention_bias: true,
  output_bias: true,
  ffn_bias: true,
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
