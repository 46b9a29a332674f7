import { Table } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { percent, seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import classes from './report.module.css';

type Part = RunReport['fidelity']['native'][number];

const WHAT: Record<Part['name'], string> = {
  compute: 'operations on the critical path',
  runtime: 'dispatch, hand-over and choosing tokens on the path',
  link: 'messages on the path, from sending to use',
  disk: 'loading and storing on the path',
  wait: 'waiting for messages, mean of all devices (beside the path)',
};

/** A run at native speed, part by part, beside its prediction for the host that ran it. */
export function NativeTable({ report }: { report: RunReport }) {
  const parts = report.fidelity.native.filter((part) => part.measured_s > 0 || part.predicted_s > 0);
  if (parts.length === 0) return null;
  return (
    <Panel
      title="Native speed"
      about="Nothing was paced: measured beside the prediction for this host"
      testId="native-table"
      flush
    >
      <Table.ScrollContainer minWidth={560}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>part</Table.Th>
              <Table.Th ta="right">measured</Table.Th>
              <Table.Th ta="right">predicted</Table.Th>
              <Table.Th ta="right">off</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {parts.map((part) => (
              <Table.Tr key={part.name}>
                <Table.Td>
                  <b>{part.name}</b> {WHAT[part.name]}
                </Table.Td>
                <Table.Td ta="right">{seconds(part.measured_s)}</Table.Td>
                <Table.Td ta="right">{seconds(part.predicted_s)}</Table.Td>
                <Table.Td ta="right">{off(part)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

/** predicted / measured - 1 */
function off({ predicted_s, measured_s }: Part): string {
  if (measured_s <= 0) return '–';
  const error = predicted_s / measured_s - 1;
  return `${error < 0 ? '−' : '+'}${percent(Math.abs(error))}`;
}
