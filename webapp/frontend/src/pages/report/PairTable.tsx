import type { RunReport } from '@/api/types';
import { percent, rate, seconds } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';

/** The network between every two boards, each way: as it was measured before the run, and as it is drawn. */
export function PairTable({ report }: { report: RunReport }) {
  const pairs = report.pairs ?? [];
  if (pairs.length === 0) return null;
  return (
    <Panel
      title="Network between the boards"
      about="Measured before the run, beside what is drawn"
      testId="pair-table"
      flush
    >
      <DataTable
        flush
        minWidth={720}
        maxHeight={420}
        rows={pairs}
        keyOf={({ sender, receiver }) => `${sender} ${receiver}`}
        testId={({ sender, receiver }) => `pair-${sender}-${receiver}`}
        columns={[
          { head: 'Direction', cell: ({ sender, receiver }) => `${sender} → ${receiver}` },
          { head: 'Measured rate', right: true, cell: (pair) => rate(pair.measured_bit_per_s) },
          { head: 'Drawn', right: true, cell: (pair) => rate(pair.drawn_bit_per_s) },
          { head: 'Measured delay', right: true, cell: (pair) => seconds(pair.measured_delay_s) },
          { head: 'Drawn', right: true, cell: (pair) => seconds(pair.drawn_delay_s) },
          { head: 'Measured loss', right: true, cell: (pair) => percent(pair.measured_loss_frac) },
          { head: 'Drawn', right: true, cell: (pair) => percent(pair.drawn_loss_frac) },
        ]}
      />
    </Panel>
  );
}
