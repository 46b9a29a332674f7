import { Table } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import { offPercent, wholePath, type Times } from './nativeParts';
import classes from './report.module.css';

type Part = RunReport['fidelity']['native'][number];

const WHAT: Record<Part['name'], string> = {
  compute: 'operations on the critical path',
  runtime: 'dispatch, hand-over, choosing tokens, and waiting for a core, on the path',
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
      title={report.world === 'nodes' ? 'On the boards' : 'Native speed'}
      about={`Nothing was paced: measured beside the prediction for ${
        report.world === 'nodes' ? 'the cluster as it is drawn' : 'this host'
      }`}
      testId="native-table"
      flush
    >
      <Table.ScrollContainer minWidth={560}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Part</Table.Th>
              <Table.Th ta="right">Measured</Table.Th>
              <Table.Th ta="right">Predicted</Table.Th>
              <Table.Th ta="right">Off</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {parts
              .filter((part) => part.name !== 'wait')
              .map((part) => (
                <PartRow key={part.name} name={part.name} what={WHAT[part.name]} times={part} />
              ))}
            <PartRow name="the whole path" what="the sum of these" times={wholePath(parts)} />
            {parts
              .filter((part) => part.name === 'wait')
              .map((part) => (
                <PartRow key={part.name} name={part.name} what={WHAT[part.name]} times={part} />
              ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

function PartRow({ name, what, times }: { name: string; what: string; times: Times }) {
  return (
    <Table.Tr>
      <Table.Td>
        <b>{name}</b> {what}
      </Table.Td>
      <Table.Td ta="right">{seconds(times.measured_s)}</Table.Td>
      <Table.Td ta="right">{seconds(times.predicted_s)}</Table.Td>
      <Table.Td ta="right">{offPercent(times)}</Table.Td>
    </Table.Tr>
  );
}
