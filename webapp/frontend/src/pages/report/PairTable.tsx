import type { RunReport } from '@/api/types';
import { percent, rate, seconds } from '@/format/units';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';

type Pair = NonNullable<RunReport['pairs']>[number];

/** The network between every two boards, each way: as it was measured before the run, and as it is drawn. */
export function PairTable({ report }: { report: RunReport }) {
  const pairs = report.pairs ?? [];
  if (pairs.length === 0) return null;
  const slowed = pairs.some(
    (pair) =>
      (pair.used_bit_per_s ?? pair.measured_bit_per_s) !== pair.measured_bit_per_s ||
      (pair.used_delay_s ?? pair.measured_delay_s) !== pair.measured_delay_s,
  );
  return (
    <Panel
      title="Network between the boards"
      about="Measured before the run, beside what is drawn; used: what messages took"
      testId="pair-table"
      flush
    >
      <DataTable
        flush
        minWidth={slowed ? 900 : 720}
        maxHeight={420}
        rows={pairs}
        keyOf={({ sender, receiver }) => `${sender} ${receiver}`}
        testId={({ sender, receiver }) => `pair-${sender}-${receiver}`}
        columns={[
          { head: 'Direction', cell: ({ sender, receiver }) => `${sender} → ${receiver}` },
          { head: 'Measured rate', right: true, cell: (pair) => rate(pair.measured_bit_per_s) },
          { head: 'Drawn', right: true, cell: (pair) => rate(pair.drawn_bit_per_s) },
          ...(slowed
            ? [{ head: 'Used', right: true, cell: (pair: Pair) => rate(pair.used_bit_per_s ?? 0) }]
            : []),
          { head: 'Measured delay', right: true, cell: (pair) => seconds(pair.measured_delay_s) },
          { head: 'Drawn', right: true, cell: (pair) => seconds(pair.drawn_delay_s) },
          ...(slowed
            ? [{ head: 'Used', right: true, cell: (pair: Pair) => seconds(pair.used_delay_s ?? 0) }]
            : []),
          { head: 'Measured loss', right: true, cell: (pair) => percent(pair.measured_loss_frac) },
          { head: 'Drawn', right: true, cell: (pair) => percent(pair.drawn_loss_frac) },
        ]}
      />
    </Panel>
  );
}
