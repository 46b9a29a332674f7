import type { Plan, RunSpec, Scenario } from './run';

export interface DeviceReport {
  name: string;
  busy_s: number;
  wait_s: number;
  peak_memory_bytes: number;
  memory_bytes: number;
  flops: number;
  energy_j: number;
}

export interface LinkReport {
  a: string;
  b: string;
  direction: 'forward' | 'backward';
  bytes: number;
  payload_bytes: number;
  busy_s: number;
  rate_bit_per_s: number;
  achieved_bit_per_s: number | null;
  energy_j: number;
}

export interface LayerReport {
  layer: number;
  device: string;
  start_s: number;
  end_s: number;
}

/** `token_s` are the times of its tokens since its arrival. */
export interface RequestReport {
  index: number;
  arrival_s: number;
  ttft_s: number;
  token_s: number[];
  output_tokens: number[];
  text: string;
  /** A classifier's answer, the most likely first. */
  classes?: ClassReport[];
}

export interface ClassReport {
  index: number;
  probability: number;
  label: string;
}

/** Where the end-to-end time went; the parts add up to `latency_s`. */
export interface Attribution {
  compute_s: number;
  link_s: number;
  load_s: number;
  staging_s: number;
  wait_s: number;
}

export interface Correctness {
  checked: boolean;
  ok: boolean | null;
  /** A lossy run is neither right nor wrong: the figures below say how far it is off. */
  lossy: boolean;
  token_identical: boolean | null;
  max_abs_error: number | null;
  max_rel_error: number | null;
  /** Mean KL divergence from the reference, in nats. */
  kl_mean: number | null;
  top1_agreement: number | null;
  why: string;
}

export interface Fidelity {
  valid: boolean | null;
  compute_error_mean: number | null;
  compute_error_p95: number | null;
  /** Durations of operations against the device model's: Σ |took - expected| / Σ expected. */
  model_error_mean: number | null;
  model_error_p95: number | null;
  compared_frac: number | null;
  /** latency / predicted latency - 1; null where it is not judged. */
  latency_error: number | null;
  latency_limit: number | null;
  link_error_max: number | null;
  late_frac: number | null;
  backend: string;
  why: string[];
  notes: string[];
}

export type OutcomeKind = 'finished' | 'out_of_memory' | 'peer_lost' | 'deadlock' | 'cancelled' | 'failed';

export interface Outcome {
  kind: OutcomeKind;
  sentence: string;
  device: string;
  time_s: number;
}

/** A loss, or a device that joined, and how the run went on; the times follow each other. */
export interface Recovery {
  device: string;
  how: 'killed' | 'frozen' | 'unreachable' | 'joined';
  at_s: number;
  detect_s: number;
  /** False where the strategy coped by itself, or nothing had to change. */
  replanned: boolean;
  replan_s: number;
  reload_s: number;
  /** Null if no token came after it. */
  rebuild_s: number | null;
}

export interface Prediction {
  latency_s: number;
  ttft_s: number;
  tpot_s: number;
  tokens_per_s: number;
  peak_memory_bytes: Record<string, number>;
  attribution: Attribution;
}

export interface RunReport {
  spec: RunSpec;
  plan: Plan | null;
  world: 'simulated' | 'real';
  dilation: number;
  outcome: Outcome;
  latency_s: number;
  ttft_s: number;
  tpot_s: number;
  tokens_per_s: number;
  energy_j: number;
  edp_j_s: number;
  output_tokens: number[];
  text: string;
  requests: RequestReport[];
  devices: DeviceReport[];
  links: LinkReport[];
  layers: LayerReport[];
  attribution: Attribution;
  correctness: Correctness;
  fidelity: Fidelity;
  prediction: Prediction | null;
  recoveries: Recovery[];
  /** How the run would have ended without new plans, in the simulated world. */
  without_replan: Outcome | null;
  scenario: Scenario;
  versions: Record<string, string>;
  timings: Record<string, unknown>;
  seed: number;
}
