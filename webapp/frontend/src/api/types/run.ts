import type { ClusterSpec, ComputeModel } from './cluster';

export interface ModelSpec {
  name: string;
  family: string;
  num_layers: number;
  hidden_size: number;
  num_heads: number;
  num_kv_heads: number;
  head_dim: number;
  intermediate_size: number;
  vocab_size: number;
  max_positions: number;
  dtype: 'float32' | 'bfloat16';
  causal: boolean;
  has_head: boolean;
  tied_head: boolean;
  /** Of models that see pictures; `tower` is null where the layers themselves do. */
  vision?: { image_size: number; patch_size: number; tower: object | null } | null;
  /** Of a classifier; 0 if it is none. */
  num_classes?: number;
  source: string;
}

export interface Workload {
  /** Exactly one of `prompt` and `prompt_tokens` is set, none for a model that reads no text. */
  prompt: string | null;
  prompt_tokens: number | null;
  /** PNG in base64, of the model's size; null: random pictures. */
  image?: string | null;
  new_tokens: number;
  requests: number;
  pattern: 'sporadic' | 'bursty';
}

export type Direction = 'both' | 'forward' | 'backward';

export type Change =
  | { kind: 'set_rate'; at_s: number; link: string; bit_per_s: number; direction: Direction }
  | { kind: 'set_delay'; at_s: number; link: string; delay_s: number; direction: Direction }
  | { kind: 'set_loss'; at_s: number; link: string; loss_frac: number; direction: Direction }
  | { kind: 'link_down' | 'link_up'; at_s: number; link: string }
  | { kind: 'slow_device'; at_s: number; device: string; factor: number }
  | { kind: 'drop_device' | 'freeze_device' | 'join_device'; at_s: number; device: string };

/** A change asked for while the run goes on, or the wish to stop it. */
export type Command = Timeless<Change> | { kind: 'stop' };

type Timeless<T> = T extends unknown ? Omit<T, 'at_s'> : never;

export interface Scenario {
  changes: Change[];
}

export type Dilation = number | 'auto' | 'native';

/** After a loss: plan again over the survivors, or end the run. */
export type Failover = 'replan' | 'stop';

export interface RunSpec {
  name: string;
  cluster: ClusterSpec;
  model: ModelSpec;
  weights: { kind: 'random' | 'directory'; directory: string };
  workload: Workload;
  strategy: string;
  params: Record<string, unknown>;
  scenario: Scenario;
  compute_model: ComputeModel | null;
  dilation: Dilation;
  silence_s: number;
  failover: Failover;
  seed: number;
}

/** What the browser asks for: names instead of resolved models and clusters. */
export interface RunRequest {
  name?: string;
  /** Either a stored cluster or a specification. */
  cluster_id?: number | null;
  cluster?: ClusterSpec | null;
  model: string;
  weights?: 'random' | null;
  strategy: string;
  params: Record<string, unknown>;
  workload: Partial<Workload>;
  scenario?: Scenario;
  dilation: Dilation;
  compute_model?: ComputeModel | null;
  silence_s?: number;
  failover?: Failover;
  seed: number;
  notes?: string;
  tags?: string[];
}

export type RunState =
  | 'queued'
  | 'planning'
  | 'building'
  | 'calibrating'
  | 'loading'
  | 'running'
  | 'verifying'
  | 'finished'
  | 'failed'
  | 'cancelled';

export type Part = 'embed' | 'vision' | 'attention' | 'ffn' | 'lm_head';
export type Axis = 'all' | 'heads' | 'columns' | 'positions';
export type Phase = 'both' | 'prefill' | 'decode';

/** Half-open [start, stop) along `axis`; embed, vision and lm_head have layer -1; "all" is the whole part. */
export interface Slice {
  layer: number;
  part: Part;
  axis: Axis;
  start: number;
  stop: number;
}

export interface Holding {
  device: number;
  slice: Slice;
  home: 'resident' | 'offloaded' | 'backup';
}

export interface Work {
  device: number;
  slice: Slice;
  phase: Phase;
}

export interface Plan {
  version: number;
  strategy: string;
  holdings: Holding[];
  work: Work[];
  layout: Record<string, unknown>;
}

/** States in which nothing more will happen. */
export function isOver(status: RunState): boolean {
  return status === 'finished' || status === 'failed' || status === 'cancelled';
}
