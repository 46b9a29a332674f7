import { Table } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { percent, rate, seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import classes from './report.module.css';

/** The network between every two boards, each way: as it was measured before the run, and as it is drawn. */
export function PairTable({ report }: { report: RunReport }) {
  const pairs = report.pairs ?? [];
  if (pairs.length === 0) return null;
  return (
    <Panel
      title="Network between the boards"
      about="Measured before the run, beside what is drawn"
      testId="pair-table"
      flush
    >
      <Table.ScrollContainer minWidth={720}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Direction</Table.Th>
              <Table.Th ta="right">Measured rate</Table.Th>
              <Table.Th ta="right">Drawn</Table.Th>
              <Table.Th ta="right">Measured delay</Table.Th>
              <Table.Th ta="right">Drawn</Table.Th>
              <Table.Th ta="right">Measured loss</Table.Th>
              <Table.Th ta="right">Drawn</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {pairs.map((pair) => (
              <Table.Tr
                key={`${pair.sender} ${pair.receiver}`}
                data-testid={`pair-${pair.sender}-${pair.receiver}`}
              >
                <Table.Td>
                  {pair.sender} → {pair.receiver}
                </Table.Td>
                <Table.Td ta="right">{rate(pair.measured_bit_per_s)}</Table.Td>
                <Table.Td ta="right">{rate(pair.drawn_bit_per_s)}</Table.Td>
                <Table.Td ta="right">{seconds(pair.measured_delay_s)}</Table.Td>
                <Table.Td ta="right">{seconds(pair.drawn_delay_s)}</Table.Td>
                <Table.Td ta="right">{percent(pair.measured_loss_frac)}</Table.Td>
                <Table.Td ta="right">{percent(pair.drawn_loss_frac)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}
