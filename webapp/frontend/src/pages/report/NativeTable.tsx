import type { RunReport } from '@/api/types';
import { seconds } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { offPercent, wholePath, type Times } from './nativeParts';

type Part = RunReport['fidelity']['native'][number];

interface Row {
  name: string;
  what: string;
  times: Times;
}

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
  const rowOf = (part: Part): Row => ({ name: part.name, what: WHAT[part.name], times: part });
  const rows = [
    ...parts.filter(({ name }) => name !== 'wait').map(rowOf),
    { name: 'the whole path', what: 'the sum of these', times: wholePath(parts) },
    ...parts.filter(({ name }) => name === 'wait').map(rowOf),
  ];
  return (
    <Panel
      title={report.world === 'nodes' ? 'On the boards' : 'Native speed'}
      about={`Nothing was paced: measured beside the prediction for ${
        report.world === 'nodes' ? 'the cluster with the links that were measured' : 'this host'
      }`}
      testId="native-table"
      flush
    >
      <DataTable
        flush
        minWidth={560}
        rows={rows}
        keyOf={({ name }) => name}
        columns={[
          {
            head: 'Part',
            cell: ({ name, what }) => (
              <>
                <b>{name}</b> {what}
              </>
            ),
          },
          { head: 'Measured', right: true, cell: ({ times }) => seconds(times.measured_s) },
          { head: 'Predicted', right: true, cell: ({ times }) => seconds(times.predicted_s) },
          { head: 'Off', right: true, cell: ({ times }) => offPercent(times) },
        ]}
      />
    </Panel>
  );
}
