import { Table } from '@mantine/core';
import { useTitles } from '@/api/queries';
import type { LinkReport, RunReport } from '@/api/types';
import { linkName, linkWords } from '@/format/links';
import { bytes, joules, maybe, percent, rate, seconds, signedPercent } from '@/format/units';
import { Panel } from '@/components/Panel';
import { spanColors } from '@/theme/spanColors';
import { Meter } from './Meter';
import classes from './report.module.css';

/** One row per direction of a link: bytes, busy time, set and measured rate, energy. */
export function LinkTable({ report }: { report: RunReport }) {
  const titles = useTitles('link');
  const head = (name: string) => titles(name).toLowerCase();
  if (report.links.length === 0) return null;
  const total = report.latency_s || Math.max(...report.links.map((link) => link.busy_s)) || 1;
  const uses = report.links.some((link) => link.energy_j > 0);
  const phases =
    report.spec.workload.new_tokens > 1 && report.links.every((link) => link.first_bytes !== null);
  const carried = report.links.reduce((sum, link) => sum + link.bytes, 0);
  const payload = report.links.reduce((sum, link) => sum + link.payload_bytes, 0);
  return (
    <Panel
      title="Links"
      about={`${bytes(carried)} carried, ${bytes(payload)} of it payload`}
      testId="link-table"
      flush
    >
      <Table.ScrollContainer minWidth={phases ? 1040 : 820}>
        <Table className={classes.table}>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Direction</Table.Th>
              <Table.Th ta="right">{head('payload_bytes')}</Table.Th>
              <Table.Th ta="right">{head('bytes')}</Table.Th>
              {phases && <Table.Th ta="right">For first tokens</Table.Th>}
              {phases && <Table.Th ta="right">For later ones</Table.Th>}
              <Table.Th w="20%">{head('busy_s')}</Table.Th>
              <Table.Th ta="right">Set rate</Table.Th>
              <Table.Th ta="right">Measured rate</Table.Th>
              <Table.Th ta="right">Error</Table.Th>
              {uses && <Table.Th ta="right">{head('energy_j')}</Table.Th>}
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {report.links.map((link, index) => (
              <Table.Tr key={index} data-testid={`link-${linkName(link)}-${link.direction}`}>
                <Table.Td>{linkWords(link, link.direction)}</Table.Td>
                <Table.Td ta="right">{bytes(link.payload_bytes)}</Table.Td>
                <Table.Td ta="right">{bytes(link.bytes)}</Table.Td>
                {phases && <Table.Td ta="right">{phaseText(link.first_bytes, link.first_busy_s)}</Table.Td>}
                {phases && (
                  <Table.Td ta="right">
                    {phaseText(
                      link.bytes - (link.first_bytes ?? 0),
                      Math.max(0, link.busy_s - (link.first_busy_s ?? 0)),
                    )}
                  </Table.Td>
                )}
                <Table.Td>
                  <Meter
                    value={link.busy_s / total}
                    color={spanColors.send}
                    text={`${seconds(link.busy_s)} · ${percent(link.busy_s / total)}`}
                  />
                </Table.Td>
                <Table.Td ta="right">{rate(link.rate_bit_per_s)}</Table.Td>
                <Table.Td ta="right">{maybe(link.achieved_bit_per_s, rate)}</Table.Td>
                <Table.Td ta="right">{maybe(errorOf(link), signedPercent)}</Table.Td>
                {uses && <Table.Td ta="right">{joules(link.energy_j)}</Table.Td>}
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </Panel>
  );
}

/** What one phase sent, and for how long: "12 kB · 1.2 ms". */
function phaseText(size: number | null, busy_s: number | null): string {
  return size ? `${bytes(size)} · ${seconds(busy_s ?? 0)}` : '–';
}

function errorOf(link: LinkReport): number | null {
  if (link.achieved_bit_per_s === null || link.rate_bit_per_s === 0) return null;
  return (link.achieved_bit_per_s - link.rate_bit_per_s) / link.rate_bit_per_s;
}
