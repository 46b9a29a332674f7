import type { RunReport } from '@/api/types';
import { bytes, percent, seconds } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { spanColors } from '@/theme/spanColors';
import { Meter } from './Meter';

type LimeReport = Extract<NonNullable<RunReport['method']>, { kind: 'lime' }>;
type Device = LimeReport['devices'][number];

/** LIME's devices: layers, slots, how long the disk was busy and waited for, online plans, parked rows. */
export function LoadingTable({ report }: { report: RunReport }) {
  const method = report.method;
  if (method?.kind !== 'lime' || method.devices.every((device) => device.loaded_bytes === 0)) return null;
  const segments = method.num_segments === 1 ? '1 segment' : `${method.num_segments} segments`;
  const without = method.left_out.length > 0 ? `; without layers: ${method.left_out.join(', ')}` : '';
  return (
    <Panel
      title="Loading"
      about={`${segments}, ${seconds(method.planned_step_s)} planned per token (mode ${method.mode})${without}`}
      testId="loading-table"
      flush
    >
      <DataTable
        flush
        minWidth={820}
        rows={method.devices}
        keyOf={({ name }) => name}
        testId={({ name }) => `loading-${name}`}
        columns={[
          { head: 'Device', cell: ({ name }) => name },
          { head: 'Layers', right: true, cell: ({ num_layers }) => num_layers },
          { head: 'Slots', right: true, cell: ({ slots }) => slots },
          { head: 'Read from disk', right: true, cell: ({ loaded_bytes }) => bytes(loaded_bytes) },
          {
            head: 'Disk busy',
            width: '22%',
            cell: (device) => (
              <Meter
                value={busyOf(device)}
                color={spanColors.load}
                text={`${seconds(device.loader_busy_s)} · ${percent(busyOf(device))}`}
              />
            ),
          },
          { head: 'Waited for the disk', right: true, cell: ({ uncovered_s }) => seconds(uncovered_s) },
          { head: 'Streams more from', right: true, cell: thresholdsOf },
          { head: 'Rows parked', right: true, cell: parkedOf },
        ]}
      />
    </Panel>
  );
}

function busyOf(device: Device): number {
  return device.loader_busy_s / (device.loader_busy_s + device.loader_idle_s || 1);
}

/** The numbers of tokens from which on more blocks were streamed. */
export function thresholdsOf(device: Device): string {
  const tokens = device.thresholds.map((one) => one.tokens);
  return tokens.length > 0 ? `${tokens.join(', ')} tokens` : '–';
}

/** The most rows that waited on another device, and on which. */
export function parkedOf(device: Device): string {
  const most = device.rows_parked.reduce((best, one) => (one.rows > best.rows ? one : best), {
    rows: 0,
    target: '',
  });
  return most.rows > 0 ? `${most.rows} on ${most.target}` : '–';
}
