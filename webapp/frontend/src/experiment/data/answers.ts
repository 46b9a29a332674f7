/** What the server answers about experiments: names for the generated types. */
import type { Schemas } from '@/api/types/schemas';
import type { Coordinate } from './types';

export type ExperimentRow = Schemas['ExperimentRow'];
export type ExperimentState = ExperimentRow['state'];
export type StoredExperiment = Schemas['ExperimentOut'];
export type Progress = StoredExperiment['progress'];
export type WorldProgress = Schemas['WorldProgress'];
export type PointAnswer = Schemas['PointOut'];
/** A point in one world. `index` and `world` identify it. */
export type RowAnswer = Schemas['RowOut'];
export type RowState = RowAnswer['state'];
export type RowsAnswer = Schemas['RowsOut'];
export type PreviewAnswer = Schemas['PreviewOut'] & { figures: FigureAnswer[]; best: BestAnswer[] };

type Coordinates = Record<string, Coordinate>;

export interface MetricRow {
  name: string;
  title: string;
  unit: string;
  better: 'lower' | 'higher' | null;
}

interface AxisAnswer {
  name: string;
  title: string;
  unit: string;
  log: boolean;
  categories: string[] | null;
}

export interface SpotAnswer {
  x: number | string;
  x_label: string;
  y: number | null;
  low: number | null;
  high: number | null;
  coordinates: Coordinates;
  repeats: { seed: number; value: number; digest: string }[];
  digests: string[];
  problem: string;
  stale: boolean;
  invalid: number;
}

export interface LineAnswer {
  label: string;
  world: string;
  spots: SpotAnswer[];
}

export interface CrossingAnswer {
  coordinates: Coordinates;
  along: string;
  x: number;
  tested_low: number;
  tested_high: number;
  below: string;
  above: string;
  text: string;
}

/** A figure with everything that it shows; crossings of lines are in its panels. */
export interface FigureAnswer {
  name: string;
  title: string;
  kind: string;
  caption: string;
  x: AxisAnswer;
  y: AxisAnswer;
  better: string | null;
  series_title: string;
  series: string[];
  panels: { label: string; lines: LineAnswer[]; crossings: CrossingAnswer[] }[];
}

/** The best of one place: all that are not distinguishable from the first of `winners`. */
export interface BestAnswer {
  coordinates: Coordinates;
  of: string;
  winners: string[];
  distinguishable: boolean;
  mean: number;
  low: number;
  high: number;
  next: string;
  next_mean: number | null;
}

export type Verdict = 'holds' | 'holds in direction' | 'does not hold' | 'not known';

export interface ClaimAnswer {
  name: string;
  text: string;
  kind: string;
  world: string;
  verdict: Verdict;
  found: string;
  where: string;
  reason: string;
}

export interface TableCellAnswer {
  value: number | null;
  low: number | null;
  high: number | null;
  number: number;
  best: boolean;
  problem: string;
  outcomes: string[];
  stale: boolean;
}

export interface PivotAnswer {
  name: string;
  title: string;
  quantity: string;
  unit: string;
  statistic: string;
  better: string | null;
  row_titles: string[];
  column_titles: string[];
  columns: string[][];
  rows: { headings: string[]; cells: (TableCellAnswer | null)[] }[];
}

export interface PublishedAnswer {
  id: string;
  where: string;
  metric: string;
  unit: string;
  coordinates: Coordinates;
  world: string;
  bound: string;
  published: number | null;
  published_low: number | null;
  published_high: number | null;
  published_outcome: string;
  ours: number | null;
  deviation: number | null;
  agrees: boolean | null;
  outcomes: string[];
  problem: string;
}

export interface AnalysisAnswer {
  figures: FigureAnswer[];
  tables: PivotAnswer[];
  best: BestAnswer[];
  claims: ClaimAnswer[];
  published: PublishedAnswer[];
}
