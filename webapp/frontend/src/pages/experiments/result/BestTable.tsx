import { Button, Table, Text } from '@mantine/core';
import { Panel } from '@/components/Panel';
import type { BestAnswer } from '@/experiment/data/answers';
import type { Coordinate, Factor } from '@/experiment/data/types';
import { coordinateOf } from '@/experiment/data/design';
import classes from './result.module.css';

interface Props {
  best: readonly BestAnswer[];
  factors: readonly Factor[];
  onSelect: (digests: readonly string[]) => void;
}

/** The best of every cell. Cells whose intervals overlap are called not distinguishable. */
export function BestTable({ best, factors, onSelect }: Props) {
  if (best.length === 0) return null;
  const names = [...new Set(best.flatMap(({ coordinates }) => Object.keys(coordinates)))];
  return (
    <Panel
      title="Best of each"
      testId="best"
      flush
      extra={
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => onSelect(best.flatMap(({ digests }) => digests))}
          data-testid="select-best"
        >
          Select these points
        </Button>
      }
    >
      <Table.ScrollContainer minWidth={420} mah={340}>
        <Table className={classes.table} verticalSpacing={6} stickyHeader>
          <Table.Thead>
            <Table.Tr>
              {names.map((name) => (
                <Table.Th key={name}>{titleOf(factors, name)}</Table.Th>
              ))}
              <Table.Th>best</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {best.map(({ coordinates, world, winners, distinguishable }) => (
              <Table.Tr key={`${world} ${JSON.stringify(coordinates)}`}>
                {names.map((name) => (
                  <Table.Td key={name}>{labelOf(factors, name, coordinates[name])}</Table.Td>
                ))}
                <Table.Td>
                  <b>{winners.join(', ')}</b>
                  {!distinguishable && (
                    <Text span size="xs" c="dimmed">
                      {' '}
                      not distinguishable
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

export function titleOf(factors: readonly Factor[], name: string): string {
  return factors.find((factor) => factor.name === name)?.title || name.replaceAll('_', ' ');
}

/** How the experiment calls a level. */
export function labelOf(factors: readonly Factor[], name: string, value: Coordinate | undefined): string {
  if (value === undefined) return '–';
  const level = factors
    .find((factor) => factor.name === name)
    ?.values.find((one) => coordinateOf(one) === value);
  return level?.label || String(value);
}
