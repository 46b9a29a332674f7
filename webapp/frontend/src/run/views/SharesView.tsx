import type { Mark } from '@/api/types';
import { percent, seconds } from '@/format/units';
import { Panel } from '@/components/Panel';
import { numbers, record, rows } from './kinds';
import type { ViewProps } from './props';
import { type BarPiece, MethodEvents, range, ShareBar } from './parts';
import classes from './views.module.css';
import { backupsOf, servingOf } from './shares';

/** AdaptLink: the primary's and the secondaries' shares of the feed-forward columns, backups below their secondary. */
export function SharesView({ plan, model, devices, data }: ViewProps) {
  const { layout } = plan;
  const promoted = (data?.methodMarks.toArray() ?? []).filter((mark) => mark.name === 'promoted');
  const name = (rank: number) => devices[rank]?.name ?? `device ${rank}`;
  const size = Math.max(model.intermediate_size, 1);
  const split = numbers(layout['split_layers']);
  const epoch = Math.max(
    Number(layout['epoch'] ?? 0),
    ...promoted.map((mark) => Number(mark.facts['epoch'])),
  );
  const serving = servingOf(rows(layout['shards']), promoted);
  const backups = backupsOf(layout['backups']);
  const heads = rows(layout['heads']);
  const shown = (piece: { rank: number; start: number; stop: number }, what: string): BarPiece => ({
    ...piece,
    label: `${name(piece.rank)} · ${piece.stop - piece.start}`,
    title: `${name(piece.rank)} ${what} ${range(piece.start, piece.stop)}`,
  });
  const side = record(record(record(layout['predicted'])['step_s'])) as Record<string, number>;
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
          ? `layers ${range(split[0]!, split.at(-1)! + 1)} are shared, ${percent(Number(layout['coverage'] ?? 1))} of the columns are safe`
          : `${name(Number(layout['primary']))} computes everything: sharing would not be faster`
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
        {backups.length > 0 && (
          <>
            <span className={classes.dim}>backups</span>
            <ShareBar
              size={size}
              testId="shares-backups"
              pieces={backups.map((piece) => ({
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
                .map(([layer, rank, start, stop]) => `layer ${layer}: ${name(rank!)} ${range(start!, stop!)}`)
                .join(' · ')}
            </span>
          </>
        )}
      </div>
      <div className={classes.note}>
        {model.intermediate_size} columns in blocks of {model.intermediate_size / Number(layout['grid'] || 1)}
        .
        {Number.isFinite(side['exact']) &&
          ` Planned per step: ${seconds(side['exact']!)}, against ${seconds(side['primary_alone'] ?? NaN)} on ${name(Number(layout['primary']))} alone.`}
      </div>
      <MethodEvents marks={promoted} describe={(mark) => promotion(mark, name)} />
    </Panel>
  );
}

function promotion({ facts }: Mark, name: (rank: number) => string): string {
  const by = rows(facts['backups'])
    .map(([rank]) => name(rank!))
    .join(', ');
  const [start, stop] = numbers(facts['columns']);
  return `${name(Number(facts['lost']))} lost: ${by} took its columns ${range(start ?? 0, stop ?? 0)} in layer ${facts['layer']}, epoch ${facts['epoch']}`;
}
