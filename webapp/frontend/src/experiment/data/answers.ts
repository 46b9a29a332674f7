/** What the server answers about experiments. */
import type { ExperimentDocument, Coordinate, FigureSpec, World } from './types';

export type ExperimentState = 'new' | 'running' | 'paused' | 'cancelled' | 'finished';
export type RowState = 'waiting' | 'running' | 'done' | 'failed' | 'problem';

export interface WorldProgress {
  total: number;
  done: number;
  failed: number;
  running: number;
  waiting: number;
  /** Points that cannot be run, with a reason. */
  problem: number;
  left_s: number | null;
}

export interface ExperimentRow {
  id: number;
  name: string;
  title: string;
  owner: string;
  may_change: boolean;
  created_at: string;
  updated_at: string;
  version: number;
  state: ExperimentState;
  total: number;
  done: number;
  failed: number;
}

export interface StoredExperiment extends ExperimentRow {
  experiment: ExperimentDocument | null;
  unreadable: string;
  started_version: number | null;
  progress: Partial<Record<World, WorldProgress>>;
  stale: number;
  code_version: string;
}

export interface PointAnswer {
  index: number;
  coordinates: Record<string, Coordinate>;
  seed: number;
  digest: string;
  problem: string;
  emulate_s: number | null;
}

export interface RowAnswer {
  index: number;
  world: World;
  state: RowState;
  coordinates: Record<string, Coordinate>;
  seed: number;
  digest: string;
  outcome: string | null;
  reason: string;
  metrics: Record<string, number>;
  run_id: number | null;
  wall_s: number | null;
  code_version: string;
  calibration: string;
  stale: boolean;
}

export interface PreviewAnswer {
  num_points: number;
  limit: number;
  problems: { path: string; message: string }[];
  points: PointAnswer[];
  predict_s: number | null;
  emulate_s: number | null;
  rows: RowAnswer[];
  waiting: number;
  figures: FigureAnswer[];
}

export interface RowsAnswer {
  rows: RowAnswer[];
  cursor: number;
  state: ExperimentState;
  progress: Partial<Record<World, WorldProgress>>;
}

/** One figure with its values, as `engine/experiments` computes it. */
export interface FigureAnswer {
  name: string;
  title: string;
  kind: FigureSpec['kind'];
  x: { name: string; title: string; unit: string; log: boolean; categories: string[] | null };
  y: { metric: string; title: string; unit: string; log: boolean; better: 'lower' | 'higher' | null };
  series: string[];
  panels: { label: string; lines: LineAnswer[] }[];
}

export interface LineAnswer {
  label: string;
  world: World | 'published';
  points: {
    x: number | string;
    x_label: string;
    mean: number | null;
    low: number | null;
    high: number | null;
    n: number;
    repeats: { value: number; seed: number; digest: string }[];
    digests: string[];
    problem: string;
    stale: boolean;
  }[];
}

/** The best of one cell: all that are not distinguishable from the first. */
export interface BestAnswer {
  coordinates: Record<string, Coordinate>;
  world: World;
  winners: string[];
  distinguishable: boolean;
  mean: number | null;
  low: number | null;
  high: number | null;
  digests: string[];
}

export type Verdict = 'holds' | 'holds in direction' | 'does not hold' | 'not known';

export interface ClaimAnswer {
  name: string;
  text: string;
  where: string;
  verdict: Verdict;
  /** What was measured, in one sentence. */
  measured: string;
  reason: string;
}

export interface BreakEvenAnswer {
  text: string;
  x: number | null;
}

export interface PivotAnswer {
  name: string;
  title: string;
  unit: string;
  statistic: string;
  rows: string[];
  columns: string[];
  cells: { value: number | null; text: string; best: boolean; problem: string; digests: string[] }[][];
}

export interface AnalysisAnswer {
  figures: FigureAnswer[];
  tables: PivotAnswer[];
  best: BestAnswer[];
  claims: ClaimAnswer[];
  break_even: BreakEvenAnswer[];
}

export interface MetricRow {
  name: string;
  title: string;
  unit: string;
  better: 'lower' | 'higher' | null;
}
