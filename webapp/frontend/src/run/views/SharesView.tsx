import type { LayoutOf, Mark } from '@/api/types';
import { percent, seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import { number, numbers, rows, text } from '@/run/data/facts';
import { nameOf, type ViewProps } from './props';
import { type BarPiece, MethodEvents, range, ShareBar } from './parts';
import classes from './views.module.css';
import { type Columns, stateOf } from './shares';

/** AdaptLink: the shares of the feed-forward columns, and below them the copies that serve as backups. */
export function SharesView({ layout, model, devices, data }: ViewProps<LayoutOf<'shares'>>) {
  const since_s = data?.plans.replanned?.time_s ?? 0;
  const events = (data?.methodMarks.toArray() ?? []).filter(({ name }) => EVENTS.has(name));
  const lost = new Set(
    devices.flatMap(({ name }, rank) => (data?.device(name)?.failedAt_s != null ? [rank] : [])),
  );
  const name = (rank: number) => nameOf(devices, rank);
  const primary = name(layout.primary);
  const size = Math.max(model.intermediate_size, 1);
  const split = layout.split_layers;
  const { serving, copies, coverage, epoch } = stateOf(layout, events, since_s, lost);
  const { heads } = layout;
  const shown = (piece: Columns, what: string): BarPiece => ({
    ...piece,
    label: `${name(piece.rank)} · ${piece.stop - piece.start}`,
    title: `${name(piece.rank)} ${what} ${range(piece.start, piece.stop)}`,
  });
  const { exact, primary_alone } = layout.predicted.step_s;
  return (
    <Panel
      title="Shares and backups"
      testId="view-shares"
      extra={
        <span className={classes.dim}>
          epoch <b data-testid="shares-epoch">{epoch}</b>
        </span>
      }
      about={
        split.length > 0
          ? `layers ${range(split[0]!, split.at(-1)! + 1)} are shared, ${covered(coverage)}`
          : `${primary} computes everything: ${REASONS[layout.comm_mode]}`
      }
    >
      <div
        className={classes.grid}
        style={{ gridTemplateColumns: 'max-content 1fr', rowGap: 8, columnGap: 16 }}
      >
        <span style={{ fontSize: 13, fontWeight: 500 }}>columns</span>
        <ShareBar
          size={size}
          testId="shares-columns"
          pieces={serving.map((piece) => shown(piece, 'serves columns'))}
        />
        {copies.length > 0 && (
          <>
            <span className={classes.dim}>backups</span>
            <ShareBar
              size={size}
              testId="shares-backups"
              pieces={copies.map((piece) => ({
                ...shown(piece, 'keeps a copy of columns'),
                kind: 'backup' as const,
              }))}
            />
          </>
        )}
        {heads.length > 0 && (
          <>
            <span style={{ fontSize: 13, fontWeight: 500 }}>moved heads</span>
            <span style={{ fontSize: 13 }}>
              {heads
                .map(([layer, rank, start, stop]) => `layer ${layer}: ${name(rank)} ${range(start, stop)}`)
                .join(' · ')}
            </span>
          </>
        )}
      </div>
      <div className={classes.note}>
        {model.intermediate_size} columns in blocks of {model.intermediate_size / Math.max(layout.grid, 1)}.
        {` Predicted per step: ${seconds(exact)}, against ${seconds(primary_alone)} on ${primary} alone.`}
      </div>
      <MethodEvents marks={events} describe={(mark) => sentence(mark, name)} />
    </Panel>
  );
}

const EVENTS = new Set(['promoted', 'copied', 'copies_lost']);

const REASONS: Record<LayoutOf<'shares'>['comm_mode'], string> = {
  exact: 'no split is predicted to be faster',
  eq5: 'the model fits into its memory',
  none: 'splitting is switched off',
};

function covered(coverage: number | null): string {
  if (coverage === null) return 'and no other device computes columns';
  return `${percent(coverage)} of the other devices’ columns have a copy`;
}

function sentence(mark: Mark, name: (rank: number) => string): string {
  const { facts } = mark;
  const now = `${percent(number(facts['coverage'], 0))} of the columns have a copy`;
  if (mark.name === 'copies_lost') return `copies failed with their devices: ${now}`;
  if (mark.name === 'promoted') return promotion(mark, name);
  const [start = 0, stop = 0] = numbers(facts['columns']);
  const device = name(number(facts['device'], 0));
  return `${device} has loaded a copy of columns ${range(start, stop)}: ${now}`;
}

function promotion({ facts }: Mark, name: (rank: number) => string): string {
  const by = rows(facts['backups'])
    .map(([rank = 0]) => name(rank))
    .join(', ');
  const [start = 0, stop = 0] = numbers(facts['columns']);
  const failed = name(number(facts['lost'], 0));
  const where = `in layer ${text(facts['layer'])}, epoch ${text(facts['epoch'])}`;
  return `${failed} failed: ${by} took its columns ${range(start, stop)} ${where}`;
}
