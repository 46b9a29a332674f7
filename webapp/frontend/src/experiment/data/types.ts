/** An experiment as the server reads and writes it, as far as the browser composes one. */

import type { World } from '@/api/worlds';

export type Coordinate = number | string | boolean;

/** One value of a factor: `value` goes to the factor's paths, and every path in `set` gets its own. */
export interface Level {
  label?: string;
  value?: unknown;
  set?: Record<string, unknown>;
}

export interface Factor {
  name: string;
  title: string;
  /** SI unit of the values; empty for names and counts. */
  unit: string;
  paths: string[];
  values: Level[];
}

export interface FigureSpec {
  name: string;
  title?: string;
  kind: 'lines' | 'bars' | 'boxes' | 'heatmap' | 'scatter';
  x: string;
  metric: string;
  series: string;
  facet: string;
  where: string[];
  log_x: boolean;
  log_y: boolean;
}

export interface TableSpec {
  name: string;
  title?: string;
  rows: string[];
  columns: string[];
  metric: string;
  statistic: 'mean' | 'median' | 'min' | 'max' | 'std' | 'interval';
  worlds: World[];
}

export interface ExperimentDocument {
  name: string;
  title: string;
  description: string;
  base: Record<string, unknown>;
  factors: Factor[];
  seeds: number[];
  worlds: World[];
  figures: FigureSpec[];
  /** What the pages do not edit, but keep. */
  zipped?: string[][];
  points?: Record<string, Coordinate>[];
  grid?: boolean;
  where?: string[];
  tables?: { name: string }[];
  claims?: object[];
  published?: object[];
  assumptions?: string[];
}
