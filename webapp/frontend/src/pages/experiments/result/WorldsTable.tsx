import { useMetrics } from '@/api/queries';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import type { RowAnswer } from '@/experiment/data/answers';
import type { ExperimentDocument } from '@/experiment/data/types';
import { lacksBoard, offBy, sideBySide, worldsOf, type Point } from '@/experiment/data/worlds';
import { metricText } from '@/format/metrics';
import { signedPercent } from '@/format/units';
import { coordinateColumns } from './coordinateColumns';

interface Props {
  rows: readonly RowAnswer[];
  experiment: ExperimentDocument;
  metric: string;
}

const STEP = 50;

/** Every point that several worlds have: what each gave, and how far measured is from predicted. */
export function WorldsTable({ rows, experiment, metric }: Props) {
  const shown = useMetrics().find(({ name }) => name === metric);
  const points = sideBySide(rows, metric);
  if (!shown || points.length === 0) return null;
  const text = (value: number | undefined) => metricText(value ?? null, shown.unit);
  return (
    <Panel
      title="Worlds side by side"
      about={`${shown.title}; in brackets how far measured is from predicted`}
      testId="worlds"
      flush
    >
      <DataTable
        flush
        minWidth={600}
        maxHeight={420}
        verticalSpacing={5}
        step={STEP}
        rows={points}
        keyOf={({ index }) => `${index}`}
        testId={({ index }) => `worlds-${index}`}
        columns={[
          ...coordinateColumns<Point>(experiment),
          ...worldsOf(points).map((world) => ({
            head: world,
            right: true,
            cell: (point: Point) => {
              const off = offBy(point, world);
              if (lacksBoard(point, world)) return `${text(point.values[world])} (a board was lost)`;
              return `${text(point.values[world])}${off === null ? '' : ` (${signedPercent(off)})`}`;
            },
          })),
        ]}
      />
    </Panel>
  );
}
