import { DataTable } from '@/components/DataTable';
import { metricText } from '@/format/metrics';
import type { FigureData } from './model';
import { valueText } from './texts';

/** The values of a figure as a table: the same content without colours and positions. */
export function FigureTable({ data }: { data: FigureData }) {
  const format = (value: number) => metricText(value, data.y.unit);
  const rows = data.panels.flatMap((panel) =>
    panel.lines.flatMap((line) => line.spots.map((spot) => ({ panel, line, spot }))),
  );
  return (
    <DataTable
      data-testid="figure-table"
      flush
      minWidth={0}
      maxHeight={430}
      verticalSpacing={5}
      rows={rows}
      keyOf={({ panel, line, spot }) => `${panel.label}/${line.label}/${line.world}/${spot.x}`}
      columns={[
        data.panels.length > 1 && { head: 'Panel', cell: ({ panel }) => panel.label },
        {
          head: 'Series',
          cell: ({ line }) => `${line.label}${line.same_as && ` (the same plan as ${line.same_as})`}`,
        },
        { head: data.x.title, cell: ({ spot }) => spot.x_label },
        { head: 'World', cell: ({ line }) => line.world },
        { head: data.y.title, cell: ({ spot }) => valueText(spot, format) },
      ]}
    />
  );
}
