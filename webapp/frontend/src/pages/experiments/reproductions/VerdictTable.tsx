import { Table, Text } from '@mantine/core';
import type { FigureVerdict } from '@/experiment/data/answers';
import classes from './reproductions.module.css';
import { colorOf, deviationText } from './verdicts';

/** Every published figure beside ours, with its state and why. */
export function VerdictTable({ verdicts }: { verdicts: readonly FigureVerdict[] }) {
  const worlds = new Set(verdicts.map(({ world }) => world));
  return (
    <Table.ScrollContainer minWidth={760} mah={460} className={classes.figures}>
      <Table verticalSpacing={5} stickyHeader data-testid="verdicts">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={130}>Where</Table.Th>
            <Table.Th>What</Table.Th>
            {worlds.size > 1 && <Table.Th>World</Table.Th>}
            <Table.Th ta="right">Published</Table.Th>
            <Table.Th ta="right">Ours</Table.Th>
            <Table.Th ta="right">Deviation</Table.Th>
            <Table.Th w={185}>State</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {verdicts.map((one) => (
            <Table.Tr key={`${one.id} ${one.world}`}>
              <Table.Td>
                <Text size="xs" c="dimmed">
                  {one.where}
                </Text>
              </Table.Td>
              <Table.Td>
                {one.what}
                {one.why && (
                  <Text size="xs" c="dimmed">
                    {one.why}
                  </Text>
                )}
              </Table.Td>
              {worlds.size > 1 && <Table.Td>{one.world}</Table.Td>}
              <Table.Td className={classes.value}>{one.published}</Table.Td>
              <Table.Td className={classes.ours}>{one.ours}</Table.Td>
              <Table.Td className={classes.value}>
                <Text span size="xs" c="dimmed">
                  {deviationText(one.deviation)}
                </Text>
              </Table.Td>
              <Table.Td>
                <span className={classes.key} title={one.repeats && `It repeats ${one.repeats}.`}>
                  <span style={{ background: colorOf(one.state) }} />
                  {one.state}
                  {one.repeats && ', repeats'}
                </span>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}
