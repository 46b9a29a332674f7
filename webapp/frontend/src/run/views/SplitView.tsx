import { seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import { numbers, record, sharesOf } from './kinds';
import type { ViewProps } from './props';
import { type BarPiece, range, ShareBar } from './parts';
import classes from './views.module.css';

/** Tensor parallelism: every layer is divided, attention by heads, feed-forward by columns, the rest by rows. */
export function SplitView({ plan, model, devices }: ViewProps) {
  const { layout } = plan;
  const group = numbers(layout['group']);
  const lines = [
    { key: 'heads', label: 'attention', unit: 'heads', size: model.num_heads },
    { key: 'columns', label: 'feed-forward', unit: 'columns', size: model.intermediate_size },
    { key: 'rows', label: 'norms, residuals', unit: 'rows', size: numbers(layout['rows']).at(-1) ?? 0 },
  ].filter((line) => numbers(layout[line.key]).length > 0);
  const predicted = Object.entries(record(layout['predicted_layer_s']));
  return (
    <Panel
      title="Split of every layer"
      testId="view-split"
      about={lines.map((line) => `${line.size} ${line.unit}`).join(', ')}
    >
      <div
        className={classes.grid}
        style={{ gridTemplateColumns: 'max-content 1fr', rowGap: 8, columnGap: 16 }}
      >
        {lines.map((line) => (
          <Line
            key={line.key}
            label={line.label}
            size={line.size}
            pieces={sharesOf(group, numbers(layout[line.key])).map(([rank, start, stop]): BarPiece => ({
              rank,
              start,
              stop,
              label: `${devices[rank]?.name ?? rank} · ${stop - start}`,
              title: `${devices[rank]?.name ?? rank}: ${line.unit} ${range(start, stop)}, ${stop - start} of ${line.size}`,
            }))}
          />
        ))}
      </div>
      <div className={classes.note}>
        {layout['all_reduce'] !== undefined &&
          `Partial sums are added after both parts by a ${String(layout['all_reduce'])} all-reduce. `}
        {layout['overlap'] === true && 'Rows travel in tiles while the next product runs. '}
        {predicted.length > 0 &&
          `Planned per layer: ${predicted.map(([name, value]) => `${name} ${seconds(Number(value))}`).join(', ')}.`}
      </div>
    </Panel>
  );
}

function Line({ label, size, pieces }: { label: string; size: number; pieces: BarPiece[] }) {
  return (
    <>
      <span style={{ fontSize: 13, fontWeight: 500 }}>{label}</span>
      <ShareBar pieces={pieces} size={Math.max(size, 1)} testId={`split-${label.split(',')[0]}`} />
    </>
  );
}
