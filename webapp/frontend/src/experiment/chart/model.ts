/** What a figure shows, as plain values. The server computes means and intervals; the browser only draws them. */

/** Predicted: the simulated world. Emulated: measured on paced devices; native: without pacing. Published: read from
 * a paper. */
export type Source = 'predicted' | 'calculated' | 'emulated' | 'native' | 'published';

export const SOURCES: readonly Source[] = ['predicted', 'calculated', 'emulated', 'native', 'published'];

/** Whether real tensors took the times, so that marks are filled and lines are whole. */
export const isMeasured = (source: Source): boolean => source === 'emulated' || source === 'native';

/** One cell of an experiment: all repeats at one value of x in one series. */
export interface Mark {
  /** A number on a numeric axis, else the label of a category. */
  x: number | string;
  /** How x is written: a label of the experiment, or the number with its unit. */
  xText: string;
  /** Mean over the repeats; null if there is none, and `problem` says why. */
  mean: number | null;
  /** Bounds of the 95 % interval of the mean; null with one repeat. */
  low: number | null;
  high: number | null;
  repeats: readonly { value: number; digest: string; runId: number | null }[];
  /** Values of runs that do not count as valid: drawn crossed, and in no mean. */
  leftOut?: readonly number[];
  /** Points of the experiment in this cell, also those without a result. */
  digests: readonly string[];
  problem: string | null;
  /** Where the values lie, in a figure of boxes. */
  box?: Spread | null;
  /** One more thing to know: the place in the paper, runs that do not count, the point in a scatter plot. */
  note?: string;
  /** Made by another version of the code, or another calibration, than the present one. */
  stale: boolean;
}

/** Least, quartiles and most of `count` values. */
export interface Spread {
  least: number;
  lower: number;
  median: number;
  upper: number;
  most: number;
  count: number;
}

export interface Series {
  /** The value of the series' factor, for example a strategy. */
  label: string;
  source: Source;
  marks: readonly Mark[];
}

/** One of several small figures that share their axes. */
export interface Facet {
  label: string;
  series: readonly Series[];
}

export interface Axis {
  title: string;
  /** SI unit, as in "s" or "bit/s"; empty for a pure number. */
  unit: string;
  log: boolean;
}

export type FigureKind = 'lines' | 'bars' | 'boxes' | 'scatter' | 'heat map';

/** Whether marks have a width, and stand beside each other at one x. */
export const isBanded = (kind: FigureKind): boolean => kind === 'bars' || kind === 'boxes';

export interface FigureData {
  kind: FigureKind;
  x: Axis;
  y: Axis;
  facets: readonly Facet[];
  /** All labels of series in the order of the experiment: a label keeps its colour when others are hidden. */
  labels: readonly string[];
  /** Values of a categorical x axis in the order of the experiment; null for a numeric axis. */
  categories: readonly string[] | null;
}

/** What a person has switched off in the legend. */
export interface Hidden {
  labels: ReadonlySet<string>;
  sources: ReadonlySet<Source>;
}

export const NOTHING_HIDDEN: Hidden = { labels: new Set(), sources: new Set() };

/** The series that are shown, with their place in `labels`. */
export function shownSeries(
  facet: Facet,
  labels: readonly string[],
  hidden: Hidden,
): { series: Series; place: number }[] {
  return facet.series
    .filter(({ label, source }) => !hidden.labels.has(label) && !hidden.sources.has(source))
    .map((series) => ({ series, place: labels.indexOf(series.label) }));
}

export function sourcesOf({ facets }: FigureData): Source[] {
  const found = new Set(facets.flatMap((facet) => facet.series.map((series) => series.source)));
  return SOURCES.filter((source) => found.has(source));
}
