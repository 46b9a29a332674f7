/** What a figure shows, as the server computes it: the browser only draws. */
import type { Schemas } from '@/api/types/schemas';

export type FigureData = Schemas['FigureData'];
export type Axis = Schemas['Axis'];
/** One of several small figures that share their axes. */
export type Panel = Schemas['Panel'];
/** The marks of one level of the series from one source. */
export type Line = Schemas['Line'];
/** One cell of an experiment: all repeats at one value of x in one series. */
export type Spot = Schemas['Spot'];
export type Quartiles = Schemas['Box'];

/** Predicted: the simulated world. Emulated: measured on paced devices; native: without pacing. Published: read from
 * a paper. */
export type Source = Line['world'];

export const SOURCES: readonly Source[] = ['predicted', 'calculated', 'emulated', 'native', 'published'];

/** Whether real tensors took the times, so that marks are filled and lines are whole. */
export const isMeasured = (source: Source): boolean => source === 'emulated' || source === 'native';

/** Whether marks have a width, and stand beside each other at one x. */
export const isBanded = (kind: string): boolean => kind === 'bars' || kind === 'boxes';

/** What a person has switched off in the legend. */
export interface Hidden {
  labels: ReadonlySet<string>;
  sources: ReadonlySet<Source>;
}

export const NOTHING_HIDDEN: Hidden = { labels: new Set(), sources: new Set() };

/** The lines that are shown, with the places of their labels in the series. */
export function shownLines(
  panel: Panel,
  series: readonly string[],
  hidden: Hidden,
): { line: Line; place: number }[] {
  return panel.lines
    .filter(({ label, world }) => !hidden.labels.has(label) && !hidden.sources.has(world))
    .map((line) => ({ line, place: series.indexOf(line.label) }));
}

export function sourcesOf({ panels }: FigureData): Source[] {
  const found = new Set(panels.flatMap(({ lines }) => lines.map(({ world }) => world)));
  return SOURCES.filter((source) => found.has(source));
}
