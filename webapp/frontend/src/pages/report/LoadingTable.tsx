import { Table } from '@mantine/core';
import type { RunReport } from '@/api/types';
import { bytes, percent, seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import { spanColors } from '@/theme/spanColors';
import { Meter } from './Meter';
import classes from './report.module.css';

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
      <Table.ScrollContainer minWidth={820}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Device</Table.Th>
              <Table.Th ta="right">Layers</Table.Th>
              <Table.Th ta="right">Slots</Table.Th>
              <Table.Th ta="right">Read from disk</Table.Th>
              <Table.Th w="22%">Disk busy</Table.Th>
              <Table.Th ta="right">Waited for the disk</Table.Th>
              <Table.Th ta="right">Streams more from</Table.Th>
              <Table.Th ta="right">Rows parked</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {method.devices.map((device) => (
              <Table.Tr key={device.name} data-testid={`loading-${device.name}`}>
                <Table.Td>{device.name}</Table.Td>
                <Table.Td ta="right">{device.num_layers}</Table.Td>
                <Table.Td ta="right">{device.slots}</Table.Td>
                <Table.Td ta="right">{bytes(device.loaded_bytes)}</Table.Td>
                <Table.Td>
                  <Meter
                    value={busyOf(device)}
                    color={spanColors.load}
                    text={`${seconds(device.loader_busy_s)} · ${percent(busyOf(device))}`}
                  />
                </Table.Td>
                <Table.Td ta="right">{seconds(device.uncovered_s)}</Table.Td>
                <Table.Td ta="right">{thresholdsOf(device)}</Table.Td>
                <Table.Td ta="right">{parkedOf(device)}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
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
