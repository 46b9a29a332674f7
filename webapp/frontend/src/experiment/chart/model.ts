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

/** A world, or a paper. */
export type Source = Line['world'];
/** How the marks of a source look. */
export type Mark = Line['mark'];

/** Dashes of the lines and bars of such marks. */
export const DASHES: Readonly<Record<Mark, string | undefined>> = {
  filled: undefined,
  hollow: '5 4',
  dotted: '2 3',
  published: undefined,
};

/** Whether marks have a width, and stand beside each other at one x. */
export const isBanded = (kind: string): boolean => kind === 'bars' || kind === 'boxes';

/** What a person has switched off in the legend. */
export interface Hidden {
  labels: ReadonlySet<string>;
  sources: ReadonlySet<Source>;
}

export const NOTHING_HIDDEN: Hidden = { labels: new Set(), sources: new Set() };

/** The lines that are drawn and not switched off, with the places of their labels in the series. */
export function shownLines(
  panel: Panel,
  series: readonly string[],
  hidden: Hidden,
): { line: Line; place: number }[] {
  return panel.lines
    .filter(({ label, world, drawn }) => drawn && !hidden.labels.has(label) && !hidden.sources.has(world))
    .map((line) => ({ line, place: series.indexOf(line.label) }));
}
