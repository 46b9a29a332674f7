export type ComputeModel = 'roofline' | 'serial' | 'measured' | 'flops';

export interface DeviceSpec {
  name: string;
  title: string;
  role: 'worker' | 'terminal';
  flop_per_s: number;
  memory_bytes: number;
  memory_byte_per_s: number;
  /** What of the memory weights may take; null: all of it. */
  on_chip_weight_bytes: number | null;
  disk_byte_per_s: number;
  staging_byte_per_s: number | null;
  message_overhead_s: number;
  op_overhead_s: number;
  half_rows: number;
  compute_model: ComputeModel;
  measured_scale: number;
  watts: number;
  j_per_memory_byte: number;
  j_per_disk_byte: number;
  source: string;
}

export interface SwitchSpec {
  name: string;
}

/** `bit_per_s` holds a→b and, unless `reverse_bit_per_s` says otherwise, b→a. Named `a--b`. */
export interface LinkSpec {
  a: string;
  b: string;
  bit_per_s: number;
  reverse_bit_per_s: number | null;
  delay_s: number;
  jitter_s: number;
  loss_frac: number;
  reverse_delay_s: number | null;
  reverse_loss_frac: number | null;
  j_per_byte: number;
}

export interface ClusterSpec {
  name: string;
  title: string;
  description: string;
  /** The device that holds the prompt and receives the result. */
  source: string;
  devices: DeviceSpec[];
  switches: SwitchSpec[];
  links: LinkSpec[];
}

/** How a cluster is drawn; kept apart from what it is. */
export interface Layout {
  positions: Record<string, { x: number; y: number }>;
  disabled: string[];
}

export interface ClusterRow {
  id: number;
  name: string;
  title: string;
  updated_at: string;
  num_devices: number;
  num_links: number;
  spec: ClusterSpec;
  layout: Layout;
  version: number;
  owner: string;
}

export interface Problem {
  path: string;
  message: string;
}

/** Whether a model's weights fit; `fits` is null when nothing was asked or nothing can be said. */
export interface Fits {
  model: string;
  strategy: string;
  model_bytes: number;
  fits: boolean | null;
  sentence: string;
  devices: Record<string, { need_bytes: number; memory_bytes: number; fits: boolean }>;
}

export interface Validation {
  problems: Problem[];
  fits: Fits;
}
