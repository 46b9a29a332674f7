import { Table, Text } from '@mantine/core';
import { useTitles } from '@/api/queries';
import type { RunReport } from '@/api/types';
import { bytes, human, joules, percent, seconds } from '@/format/units';
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
      <Table.ScrollContainer minWidth={820}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Device</Table.Th>
              <Table.Th w="22%">{head('busy_s')}</Table.Th>
              <Table.Th ta="right">{head('wait_s')}</Table.Th>
              <Table.Th w="26%">{head('peak_memory_bytes')}</Table.Th>
              <Table.Th ta="right">Predicted peak</Table.Th>
              <Table.Th ta="right">{head('flops')}</Table.Th>
              {report.energy_j > 0 && <Table.Th ta="right">{head('energy_j')}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {report.devices.map((device, rank) => {
              const used = device.peak_memory_bytes / device.memory_bytes;
              const predicted = report.predictions.with_all_changes_known?.peak_memory_bytes[device.name];
              return (
                <Table.Tr key={device.name} data-testid={`device-${device.name}`}>
                  <Table.Td>
                    <span className={classes.name}>
                      <span className={classes.dot} style={{ background: deviceColor(rank) }} />
                      {device.name}
                    </span>
                  </Table.Td>
                  <Table.Td>
                    <Meter
                      value={device.busy_s / longest}
                      color={deviceColor(rank)}
                      text={`${seconds(device.busy_s)} · ${percent(device.busy_s / longest)}`}
                    />
                  </Table.Td>
                  <Table.Td ta="right">{seconds(device.wait_s)}</Table.Td>
                  <Table.Td data-testid={`peak-memory-${device.name}`}>
                    {device.peak_memory_bytes === 0 && report.outcome.kind !== 'finished' ? (
                      <Text span size="sm" c="dimmed">
                        not known: the run ended early
                      </Text>
                    ) : (
                      <Meter
                        value={used}
                        color={used > 1 ? 'var(--loom-bad)' : deviceColor(rank)}
                        text={`${bytes(device.peak_memory_bytes)} of ${bytes(device.memory_bytes)} · ${percent(used)}`}
                      />
                    )}
                  </Table.Td>
                  <Table.Td ta="right">
                    {predicted === undefined ? (
                      <Text span c="dimmed">
                        –
                      </Text>
                    ) : (
                      bytes(predicted)
                    )}
                  </Table.Td>
                  <Table.Td ta="right">{human(device.flops, 'FLOP')}</Table.Td>
                  {report.energy_j > 0 && (
                    <Table.Td ta="right" data-testid={`energy-${device.name}`}>
                      {joules(device.energy_j)}
                    </Table.Td>
                  )}
                </Table.Tr>
              );
            })}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}
