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

/** Without the lines that are one computation with another, which stands for them. A heat map has all of its rows. */
export function drawn(data: FigureData): FigureData {
  if (data.kind === 'heatmap') return data;
  const panels = data.panels.map((panel) => ({
    ...panel,
    lines: panel.lines.filter(({ same_as }) => same_as === ''),
  }));
  return { ...data, panels };
}

/** The names of the levels that the line of this label stands for, its own first. */
export function namesOf({ panels }: FigureData, label: string): string {
  const lines = panels.flatMap(({ lines }) => lines);
  const also = lines.find((line) => line.label === label && line.also.length > 0)?.also ?? [];
  return [label, ...also].join(', ');
}
