/** Answers of the API that combine a request, its specification, its plan and its report. */
import type { RunReport } from './report';
import type { Plan, RunRequest, RunSpec, RunState } from './run';

export interface RunRow {
  id: number;
  name: string;
  status: RunState;
  /** What the current state is about; empty when there is nothing to say. */
  detail: string;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  cluster_name: string;
  model: string;
  strategy: string;
  owner: string;
  queue_position: number | null;
  outcome: string | null;
  latency_s: number | null;
  ttft_s: number | null;
  tpot_s: number | null;
  tokens_per_s: number | null;
  correct: boolean | null;
  valid: boolean | null;
  tags: string[];
}

export interface RunDetail extends RunRow {
  notes: string;
  /** What was asked for, its cluster frozen: asking it again gives the same run. */
  request: RunRequest;
  spec: RunSpec;
  plan: Plan | null;
  report: RunReport | null;
  prediction: RunReport | null;
  error: string | null;
}

export interface PredictResult {
  report: RunReport;
  plan: Plan | null;
}

export interface Comparison {
  runs: { id: number; name: string }[];
  params: { path: string; values: unknown[]; differs: boolean }[];
  metrics: {
    name: string;
    unit: string;
    values: (number | null)[];
    deltas: (number | null)[];
    better: 'lower' | 'higher' | null;
  }[];
  [series: string]: unknown;
}
