import type { LayoutOf } from '@/api/types';
import { percent } from '@/format/units';
import { Panel } from '@/components/Panel';
import { numbers } from '@/run/data/facts';
import { sharesOf } from './bounds';
import { nameOf, type ViewProps } from './props';
import { type BarPiece, range, ShareBar } from './parts';
import classes from './views.module.css';

/** Expert parallelism: who has which experts of every layer, and how much of the routers' choices falls on whom. */
export function ExpertsView({ layout, model, devices, data }: ViewProps<LayoutOf<'experts'>>) {
  const name = (rank: number) => nameOf(devices, rank);
  const used = numbers(
    data?.methodMarks.toArray().findLast((mark) => mark.name === 'experts_used')?.facts['pairs'],
  );
  const total = used.reduce((sum, one) => sum + one, 0);
  const ends = used.map((_, at) => used.slice(0, at + 1).reduce((sum, one) => sum + one, 0));
  const placed = sharesOf(layout.group, layout.experts).map(([rank, start, stop]): BarPiece => ({
    rank,
    start,
    stop,
    label: `${name(rank)} · ${stop - start}`,
    title: `${name(rank)}: experts ${range(start, stop)}, ${stop - start} of ${model.num_experts}`,
  }));
  const use = sharesOf(layout.group, [0, ...ends]).map(([rank, start, stop]): BarPiece => ({
    rank,
    start,
    stop,
    label: `${name(rank)} · ${percent((stop - start) / total)}`,
    title: `${name(rank)}: ${stop - start} of ${total} rows through an expert`,
  }));
  return (
    <Panel
      title="Experts of every layer"
      testId="view-experts"
      about={`${model.num_experts} experts, ${model.experts_per_token} for each row; ${name(layout.host)} has attention and routers`}
    >
      <div
        className={classes.grid}
        style={{ gridTemplateColumns: 'max-content 1fr', rowGap: 8, columnGap: 16 }}
      >
        <span style={{ fontSize: 13, fontWeight: 500 }}>placed</span>
        <ShareBar pieces={placed} size={Math.max(model.num_experts, 1)} testId="experts-placed" />
        {total > 0 && (
          <>
            <span style={{ fontSize: 13, fontWeight: 500 }}>used</span>
            <ShareBar pieces={use} size={total} testId="experts-used" />
          </>
        )}
      </div>
      <div className={classes.note}>
        {total > 0
          ? `Rows went through ${total.toLocaleString('en')} experts so far.`
          : 'Rows travel to the devices with the experts that they choose, and back.'}
      </div>
    </Panel>
  );
}
