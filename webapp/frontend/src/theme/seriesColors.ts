/** Colours of the series of a figure: at least 3 : 1 against the surface of both colour schemes (WCAG 1.4.11). */
export const seriesColors = [
  '#3f7fc4',
  '#c8701a',
  '#178c7a',
  '#9a6ad6',
  '#cf4d68',
  '#5b8f2f',
  '#b653a4',
  '#a3704a',
  '#6b8096',
  '#8f8420',
] as const;

/** Colour of the series at this place in the experiment; repeats after ten, where the marker's shape differs. */
export function seriesColor(place: number): string {
  return seriesColors[place % seriesColors.length] ?? seriesColors[0];
}
