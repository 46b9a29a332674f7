/** What the figure of a comparison shows as rows of a table: one per mark, in SI units. */
import type { Schemas } from '@/api/types/schemas';

const HEAD =
  'metric,unit,x,x value,series,source,n,mean,interval low,interval high,least,lower quartile,median,upper quartile,most,runs,values of the runs';

export function rowsOf({ figure, view }: Schemas['RunsFigure']): unknown[][] {
  const marks = figure.panels.flatMap(({ lines }) =>
    lines.flatMap(({ label, world, spots }) => spots.map((spot) => ({ label, world, spot }))),
  );
  const rows = marks.map(({ label, world, spot: { coordinates, y, low, high, box, repeats, digests } }) => [
    view.metric,
    figure.y.unit,
    view.x,
    coordinates['x'],
    label,
    world,
    box?.count ?? repeats.length,
    y,
    low,
    high,
    box?.least,
    box?.lower,
    box?.median,
    box?.upper,
    box?.most,
    digests.join(' '),
    repeats.map(({ value }) => value).join(' '),
  ]);
  return [HEAD.split(','), ...rows];
}
