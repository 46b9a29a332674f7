import { Text } from '@mantine/core';
import { useTitles } from '@/api/queries';
import type { RunReport } from '@/api/types';
import { bytes, human, joules, percent, seconds } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { deviceColor } from '@/theme/deviceColors';
import { Meter } from './Meter';
import classes from './report.module.css';

/** One row per device: busy and waiting time, peak memory, operations, energy. */
export function DeviceTable({ report }: { report: RunReport }) {
  const titles = useTitles('device');
  const head = (name: string) => titles(name).toLowerCase();
  const longest = Math.max(report.latency_s, ...report.devices.map((device) => device.busy_s)) || 1;
  return (
    <Panel title="Devices" testId="device-table" flush>
      <DataTable
        flush
        minWidth={820}
        rows={report.devices}
        keyOf={({ name }) => name}
        testId={({ name }) => `device-${name}`}
        columns={[
          {
            head: 'Device',
            cell: ({ name }, rank) => (
              <span className={classes.name}>
                <span className={classes.dot} style={{ background: deviceColor(rank) }} />
                {name}
              </span>
            ),
          },
          {
            head: head('busy_s'),
            width: '22%',
            cell: ({ busy_s }, rank) => (
              <Meter
                value={busy_s / longest}
                color={deviceColor(rank)}
                text={`${seconds(busy_s)} · ${percent(busy_s / longest)}`}
              />
            ),
          },
          { head: head('wait_s'), right: true, cell: ({ wait_s }) => seconds(wait_s) },
          {
            head: head('peak_memory_bytes'),
            width: '26%',
            testId: ({ name }) => `peak-memory-${name}`,
            cell: ({ peak_memory_bytes: peak, memory_bytes: memory }, rank) =>
              peak === 0 && report.outcome.kind !== 'finished' ? (
                <Text span size="sm" c="dimmed">
                  not known: the run ended early
                </Text>
              ) : (
                <Meter
                  value={peak / memory}
                  color={peak > memory ? 'var(--loom-bad)' : deviceColor(rank)}
                  text={`${bytes(peak)} of ${bytes(memory)} · ${percent(peak / memory)}`}
                />
              ),
          },
          {
            head: 'Predicted peak',
            right: true,
            cell: ({ name }) => {
              const predicted = report.predictions.with_all_changes_known?.peak_memory_bytes[name];
              return predicted === undefined ? (
                <Text span c="dimmed">
                  –
                </Text>
              ) : (
                bytes(predicted)
              );
            },
          },
          { head: head('flops'), right: true, cell: ({ flops }) => human(flops, 'FLOP') },
          report.energy_j > 0 && {
            head: head('energy_j'),
            right: true,
            testId: ({ name }) => `energy-${name}`,
            cell: ({ energy_j }) => joules(energy_j),
          },
        ]}
      />
    </Panel>
  );
}
