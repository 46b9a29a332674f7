import type { RunDetail } from '@/api/types';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { maybe, percent, seconds } from '@/format/units';
import type { RunData } from '@/run/data/runData';
import type { Effect } from '@/run/data/effects';
import { happenings } from './happenings';
import { nameOf } from './predictions';

/** By what factor a token must change to be told. */
const SEEN = 1.05;

/** Every change of the cluster and of the plan: when, what, who made it, and the time of a token before and after. */
export function Happened({ run, data }: { run: RunDetail; data: RunData | undefined }) {
  const rows = happenings(run.finding?.changes ?? [], data, run.report?.predictions.from_here_on ?? []);
  if (rows.length === 0) return null;
  const isPredicted = rows.some(({ rest }) => rest !== null);
  const isKnownBy = rows.some(({ by }) => by !== '');
  return (
    <Panel
      title="What happened"
      about="times of a token: the median of up to 12 tokens before and after each change"
      testId="happened"
      flush
    >
      <DataTable
        flush
        minWidth={760}
        rows={rows}
        keyOf={({ key }) => key}
        testId={() => 'happening'}
        columns={[
          { head: 'at', right: true, width: 100, cell: ({ time_s }) => seconds(time_s) },
          { head: 'Change', look: { fw: 500 }, cell: ({ label }) => label },
          isKnownBy && { head: 'By', look: { c: 'dimmed' }, cell: ({ by }) => by },
          { head: 'Token before', right: true, cell: ({ effect }) => maybe(effect?.before_s, seconds) },
          { head: 'Token after', right: true, cell: ({ effect }) => maybe(effect?.after_s, seconds) },
          { head: 'Longest', right: true, cell: ({ effect }) => maybe(effect?.worst_s, seconds) },
          { head: 'Effect', right: true, cell: ({ effect }) => (effect ? changeText(effect) : '–') },
          isPredicted && {
            head: nameOf('from_here_on'),
            about: 'End-to-end latency, predicted while the run went on',
            right: true,
            cell: ({ rest }) => (rest ? `${seconds(rest.latency_s)} in all` : '–'),
          },
        ]}
      />
    </Panel>
  );
}

/** "+90 %", from 5 % on as in the report's sentences; "one pause" where only the worst token was that much longer. */
function changeText({ before_s, after_s, worst_s }: Effect): string {
  const ratio = after_s / before_s;
  if (!Number.isFinite(ratio)) return '–';
  if (Math.max(ratio, 1 / ratio) < SEEN) return worst_s / before_s < SEEN ? 'none' : 'one pause';
  return `${ratio > 1 ? '+' : '−'}${percent(Number(Math.abs(ratio - 1).toFixed(2)))}`;
}
