import { useTitles } from '@/api/queries';
import type { LinkReport, RunReport } from '@/api/types';
import { linkName, linkWords } from '@/format/links';
import { bytes, joules, maybe, percent, rate, seconds, signedPercent } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { spanColors } from '@/theme/spanColors';
import { Meter } from './Meter';

/** One row per direction of a link: bytes, busy time, set and measured rate, energy. What was measured between
 * boards is the network's, beside what was drawn in a table of its own.
 */
export function LinkTable({ report }: { report: RunReport }) {
  const titles = useTitles('link');
  const head = (name: string) => titles(name).toLowerCase();
  if (report.links.length === 0) return null;
  const total = report.latency_s || Math.max(...report.links.map((link) => link.busy_s)) || 1;
  const uses = report.links.some((link) => link.energy_j > 0);
  const paced = report.world !== 'nodes';
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
      <DataTable
        flush
        minWidth={phases ? 1040 : 820}
        rows={report.links}
        keyOf={(_, at) => at}
        testId={(link) => `link-${linkName(link)}-${link.direction}`}
        columns={[
          { head: 'Direction', cell: (link) => linkWords(link, link.direction) },
          { head: head('payload_bytes'), right: true, cell: (link) => bytes(link.payload_bytes) },
          { head: head('bytes'), right: true, cell: (link) => bytes(link.bytes) },
          phases && {
            head: 'For first tokens',
            right: true,
            cell: (link) => phaseText(link.first_bytes, link.first_busy_s),
          },
          phases && {
            head: 'For later ones',
            right: true,
            cell: (link) =>
              phaseText(
                link.bytes - (link.first_bytes ?? 0),
                Math.max(0, link.busy_s - (link.first_busy_s ?? 0)),
              ),
          },
          {
            head: head('busy_s'),
            width: '20%',
            cell: ({ busy_s }) => (
              <Meter
                value={busy_s / total}
                color={spanColors.send}
                text={`${seconds(busy_s)} · ${percent(busy_s / total)}`}
              />
            ),
          },
          { head: 'Set rate', right: true, cell: (link) => rate(link.rate_bit_per_s) },
          paced && {
            head: 'Measured rate',
            right: true,
            cell: (link) => maybe(link.achieved_bit_per_s, rate),
          },
          paced && { head: 'Error', right: true, cell: (link) => maybe(errorOf(link), signedPercent) },
          uses && { head: head('energy_j'), right: true, cell: (link) => joules(link.energy_j) },
        ]}
      />
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
