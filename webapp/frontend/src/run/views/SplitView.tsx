import type { LayoutOf } from '@/api/types';
import { seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import { sharesOf } from './bounds';
import { nameOf, type ViewProps } from './props';
import { type BarPiece, range, ShareBar } from './parts';
import classes from './views.module.css';

type Layout = LayoutOf<'tensor_parallel' | 'galaxy'>;

/** Tensor parallelism: attention is split by heads, feed-forward by columns and, in Galaxy, the rest by rows. */
export function SplitView({ layout, model, devices }: ViewProps<Layout>) {
  const rows = layout.kind === 'galaxy' ? layout.rows : [];
  const lines = [
    { bounds: layout.heads, label: 'attention', unit: 'heads', size: model.num_heads },
    { bounds: layout.columns, label: 'feed-forward', unit: 'columns', size: model.intermediate_size },
    { bounds: rows, label: 'norms, residuals', unit: 'rows', size: rows.at(-1) ?? 0 },
  ].filter((line) => line.bounds.length > 0);
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
            key={line.unit}
            label={line.label}
            size={line.size}
            pieces={sharesOf(layout.group, line.bounds).map(([rank, start, stop]): BarPiece => ({
              rank,
              start,
              stop,
              label: `${nameOf(devices, rank)} · ${stop - start}`,
              title: `${nameOf(devices, rank)}: ${line.unit} ${range(start, stop)}, ${stop - start} of ${line.size}`,
            }))}
          />
        ))}
      </div>
      <div className={classes.note}>{noteOf(layout)}</div>
    </Panel>
  );
}

function noteOf(layout: Layout): string {
  if (layout.kind === 'tensor_parallel')
    return allReduceNote(layout.all_reduce, layout.decode_all_reduce ?? layout.all_reduce);
  const { whole, tiles } = layout.predicted_layer_s;
  const overlap = layout.overlap ? 'Rows travel in tiles while the next product runs. ' : '';
  return `${overlap}Predicted per layer: whole ${seconds(whole)}, tiles ${seconds(tiles)}.`;
}

function allReduceNote(prompt: string, token: string): string {
  const how =
    prompt === token
      ? `A ${prompt} all-reduce adds`
      : `All-reduces (${prompt} for the prompt, ${token} for each token) add`;
  return `${how} the partial sums after both parts.`;
}

function Line({ label, size, pieces }: { label: string; size: number; pieces: BarPiece[] }) {
  return (
    <>
      <span style={{ fontSize: 13, fontWeight: 500 }}>{label}</span>
      <ShareBar pieces={pieces} size={Math.max(size, 1)} testId={`split-${label.split(',')[0]}`} />
    </>
  );
}
