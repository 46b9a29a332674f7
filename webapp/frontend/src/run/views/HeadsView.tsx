import { memo, useMemo, useState } from 'react';
import type { LayoutOf, Mark } from '@/api/types';
import { seconds, three } from '@/format/units';
import { Panel } from '@/components/Panel';
import { countsOf, type HeadCounts, type HeadRow, PRUNED } from '@/run/data/headMap';
import { text as textFact } from '@/run/data/facts';
import { nameOf, type ViewProps } from './props';
import { colorOf, DeviceName, MethodEvents } from './parts';
import classes from './views.module.css';

/** EdgeFormer: which device computes which attention head of every layer. */
export function HeadsView({ layout, model, devices, data }: ViewProps<LayoutOf<'heads'>>) {
  const [hover, setHover] = useState('');
  const owners = useMemo(() => ownersOf(layout.blocks), [layout]);
  const known = new Map(data?.heads.list().map((row) => [row.layer, row]));
  const method = data?.report?.method;
  const blocks = new Map(method?.kind === 'heads' ? method.blocks.map((block) => [block.layer, block]) : []);
  const marks = data?.methodMarks.toArray() ?? [];
  const counts = countOf([...known.values()]);
  const total = model.num_heads * known.size;
  const pruned = counts.get(PRUNED) ?? 0;
  const name = (rank: number) => nameOf(devices, rank);
  return (
    <Panel
      title="Head map"
      testId="view-heads"
      about={
        total === 0
          ? 'the owner of every layer; heads are allocated during the run'
          : `which device computes which of the ${model.num_heads} heads; ${pruned} of ${total} pruned`
      }
    >
      <div style={{ overflowX: 'auto' }}>
        <div
          className={classes.heads}
          onMouseLeave={() => setHover('')}
          style={{
            gridTemplateColumns: `max-content max-content repeat(${model.num_heads}, minmax(11px, 1fr)) repeat(3, max-content)`,
          }}
        >
          <span className={classes.dim} style={{ paddingRight: 8 }}>
            layer
          </span>
          <span className={classes.dim}>owner</span>
          {Array.from({ length: model.num_heads }, (_, head) => (
            <span key={head} className={classes.dim} style={{ textAlign: 'center' }}>
              {labelled(head, model.num_heads) ? head : ''}
            </span>
          ))}
          <span
            className={`${classes.dim} ${classes.right}`}
            style={{ paddingLeft: 10 }}
            title="heads that are attended, and those of them that neighbours attend"
          >
            kept / lent
          </span>
          <span
            className={`${classes.dim} ${classes.right}`}
            style={{ paddingLeft: 10 }}
            title="look-ups that found a known head, and that did not"
          >
            hits / misses
          </span>
          <span
            className={`${classes.dim} ${classes.right}`}
            title="time of the shared attention, and its deadline"
          >
            shared / deadline
          </span>
          {Array.from({ length: model.num_layers }, (_, layer) => (
            <Row
              key={layer}
              layer={layer}
              owner={owners(layer)}
              row={known.get(layer)}
              block={blocks.get(layer)}
              numHeads={model.num_heads}
              name={name}
              onHover={setHover}
            />
          ))}
        </div>
      </div>
      <div className={classes.legend}>
        {devices.map(
          (device, rank) =>
            (counts.has(rank) || (total === 0 && rank === owners(0))) && (
              <span key={device.name}>
                <span className={classes.swatch} style={{ background: colorOf(rank)['--piece' as never] }} />
                {device.name} <b>{counts.get(rank) ?? ''}</b>
              </span>
            ),
        )}
        <span>
          <span className={classes.swatch} data-state="pruned" />
          pruned <b>{total > 0 ? pruned : ''}</b>
        </span>
        <span>outlined: moved after a change</span>
      </div>
      <div className={classes.note} data-testid="heads-hover">
        {hover || 'Point at a head for its device and its score.'}
      </div>
      <MethodEvents marks={marks} describe={(mark) => describeMark(mark, name)} />
    </Panel>
  );
}

function describeMark({ name: kind, facts }: Mark, name: (rank: number) => string): string {
  const layer = `layer ${textFact(facts['layer'])}`;
  if (kind === 'reallocated') return `${layer}: heads moved, ${textFact(facts['reason'])}`;
  if (kind === 'heads_recomputed') {
    const [owner, failed] = [name(Number(facts['owner'])), name(Number(facts['lost']))];
    return `${layer}: ${owner} recomputes the heads of ${failed}, which failed`;
  }
  return `${layer}: ${kind.replaceAll('_', ' ')}`;
}

interface RowProps {
  layer: number;
  owner: number;
  row: HeadRow | undefined;
  block: HeadCounts | undefined;
  numHeads: number;
  name: (rank: number) => string;
  onHover: (text: string) => void;
}

const Row = memo(
  function Row({ layer, owner, row, block, numHeads, name, onHover }: RowProps) {
    const counts = row && countsOf(row, block);
    const side = { alignSelf: 'center', paddingLeft: 10 };
    return (
      <>
        <span className={classes.dim} style={{ textAlign: 'right', alignSelf: 'center', paddingRight: 8 }}>
          {layer}
        </span>
        <span style={{ alignSelf: 'center', paddingRight: 10 }}>
          <DeviceName rank={owner} name={name(owner)} />
        </span>
        {Array.from({ length: numHeads }, (_, head) => {
          const rank = row?.deviceOf[head];
          const text = describe(layer, head, row, name);
          return (
            <div
              key={head}
              className={classes.head}
              style={colorOf(rank === undefined || rank === PRUNED ? owner : rank)}
              title={text}
              data-state={rank === undefined ? 'unknown' : rank === PRUNED ? 'pruned' : 'attended'}
              data-moved={row?.moved.has(head) || undefined}
              data-testid={`head-${layer}-${head}`}
              onMouseEnter={() => onHover(text)}
            />
          );
        })}
        <span
          className={`${classes.dim} ${classes.right}`}
          style={side}
          data-testid={`kept-of-block-${layer}`}
        >
          {counts ? `${counts.kept} / ${counts.lent}` : '–'}
        </span>
        <span
          className={`${classes.dim} ${classes.right}`}
          style={side}
          title={
            counts && counts.misses > 0 ? `${counts.measured} of ${counts.misses} were measured` : undefined
          }
        >
          {lookups(counts)}
        </span>
        <span className={`${classes.dim} ${classes.right}`} style={side}>
          {row && row.collab_s !== null
            ? `${seconds(row.collab_s)} / ${row.deadline_s === null ? 'none' : seconds(row.deadline_s)}`
            : '–'}
        </span>
      </>
    );
  },
  (before, after) =>
    before.row === after.row &&
    before.block === after.block &&
    before.owner === after.owner &&
    before.numHeads === after.numHeads,
);

function lookups(counts: HeadCounts | undefined): string {
  if (!counts) return '–';
  return counts.hits + counts.misses > 0 ? `${counts.hits} / ${counts.misses}` : 'none needed';
}

function describe(
  layer: number,
  head: number,
  row: HeadRow | undefined,
  name: (rank: number) => string,
): string {
  const rank = row?.deviceOf[head];
  const where = `Layer ${layer}, head ${head}`;
  if (rank === undefined) return `${where}: not allocated yet`;
  if (rank === PRUNED) return `${where}: pruned to meet the deadline`;
  const score = row?.scores[head];
  return `${where}: attended by ${name(rank)}${score === null || score === undefined ? '' : `, score ${three(score)}`}`;
}

function ownersOf(blocks: LayoutOf<'heads'>['blocks']): (layer: number) => number {
  return (layer) => blocks.find(([, start, stop]) => start <= layer && layer < stop)?.[0] ?? 0;
}

function countOf(all: HeadRow[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const row of all) for (const rank of row.deviceOf) counts.set(rank, (counts.get(rank) ?? 0) + 1);
  return counts;
}

function labelled(head: number, count: number): boolean {
  return head % (count > 32 ? 8 : count > 16 ? 4 : 1) === 0;
}
