/** What a figure shows, as the server computes it: the browser only draws. */
import type { Schemas } from '@/api/types/schemas';
import { WORLDS } from '@/api/worlds';

export type FigureData = Schemas['FigureData'];
export type Axis = Schemas['Axis'];
/** One of several small figures that share their axes. */
export type Panel = Schemas['Panel'];
/** The marks of one level of the series from one source. */
export type Line = Schemas['Line'];
/** One cell of an experiment: all repeats at one value of x in one series. */
export type Spot = Schemas['Spot'];
export type Quartiles = Schemas['Box'];

/** A world, or a paper. */
export type Source = Line['world'];

export const SOURCES: readonly Source[] = [...WORLDS, 'published'];

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
