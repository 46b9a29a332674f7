import { Button, Table, Text } from '@mantine/core';
import { Panel } from '@/components/Panel';
import type { BestAnswer } from '@/experiment/data/answers';
import { factorTitle, labelOf } from '@/experiment/data/design';
import type { Factor } from '@/experiment/data/types';
import classes from './result.module.css';

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
      <Table.ScrollContainer minWidth={420} mah={340}>
        <Table className={classes.table} verticalSpacing={6} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              {names.map((name) => (
                <Table.Th key={name}>{factorTitle(factors, name)}</Table.Th>
              ))}
              <Table.Th>Best</Table.Th>
              <Table.Th ta="right">Value</Table.Th>
              <Table.Th>Next</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {best.map(({ coordinates, winners, same, distinguishable, told, mean, next, next_mean }) => (
              <Table.Tr key={JSON.stringify(coordinates)}>
                {names.map((name) => (
                  <Table.Td key={name}>{labelOf(factors, name, coordinates[name])}</Table.Td>
                ))}
                <Table.Td>
                  {same.length > 0 && distinguishable && !next ? (
                    told
                  ) : (
                    <>
                      <b>{winners[0]}</b>
                      <Text span size="sm" c="dimmed">
                        {told.slice(winners[0]?.length)}
                      </Text>
                    </>
                  )}
                </Table.Td>
                <Table.Td ta="right">{format(mean)}</Table.Td>
                <Table.Td>
                  {next && next_mean !== null && (
                    <Text span size="sm" c="dimmed">
                      {next}, {format(next_mean)}
                    </Text>
                  )}
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}
