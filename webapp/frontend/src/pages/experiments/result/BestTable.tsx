import { Button, Text } from '@mantine/core';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import type { BestAnswer } from '@/experiment/data/answers';
import { factorTitle, labelOf } from '@/experiment/data/design';
import type { Factor } from '@/experiment/data/types';

interface Props {
  best: readonly BestAnswer[];
  factors: readonly Factor[];
  /** Formats a value of the metric that decides. */
  format: (value: number) => string;
  onSelect: () => void;
}

/** The best of every place: nobody where all methods come to one plan. Those whose intervals overlap with the best
 *  are called not distinguishable. */
export function BestTable({ best, factors, format, onSelect }: Props) {
  if (best.length === 0) return null;
  const names = [...new Set(best.flatMap(({ coordinates }) => Object.keys(coordinates)))];
  return (
    <Panel
      title="Best of each"
      testId="best"
      flush
      extra={
        <Button size="compact-xs" variant="default" onClick={onSelect} data-testid="select-best">
          Select these points
        </Button>
      }
    >
      <DataTable
        flush
        minWidth={420}
        maxHeight={340}
        verticalSpacing={6}
        rows={best}
        keyOf={({ coordinates }) => JSON.stringify(coordinates)}
        columns={[
          ...names.map((name) => ({
            head: factorTitle(factors, name),
            cell: ({ coordinates }: BestAnswer) => labelOf(factors, name, coordinates[name]),
          })),
          { head: 'Best', cell: (place) => <Winner place={place} /> },
          { head: 'Value', right: true, cell: ({ mean }) => format(mean) },
          {
            head: 'Next',
            cell: ({ next, next_mean }) =>
              next &&
              next_mean !== null && (
                <Text span size="sm" c="dimmed">
                  {next}, {format(next_mean)}
                </Text>
              ),
          },
        ]}
      />
    </Panel>
  );
}

function Winner({ place: { winners, same, distinguishable, told, next } }: { place: BestAnswer }) {
  if (same.length > 0 && distinguishable && !next) return told;
  return (
    <>
      <b>{winners[0]}</b>
      <Text span size="sm" c="dimmed">
        {told.slice(winners[0]?.length)}
      </Text>
    </>
  );
}
