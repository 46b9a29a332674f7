import type { Column } from '@/components/DataTable';
import { labelOf } from '@/experiment/data/design';
import type { ExperimentDocument } from '@/experiment/data/types';

interface Point {
  coordinates: Record<string, Parameters<typeof labelOf>[2]>;
  seed: number;
}

/** What tells one point from another: a column per factor, and one of seeds where there are several. */
export function coordinateColumns<Row extends Point>({ factors, seeds }: ExperimentDocument) {
  return [
    ...factors.map(({ name, title }): Column<Row> => ({
      head: title || name,
      cell: ({ coordinates }) => labelOf(factors, name, coordinates[name]),
    })),
    seeds.length > 1 && ({ head: 'Seed', cell: ({ seed }) => seed } satisfies Column<Row>),
  ];
}
