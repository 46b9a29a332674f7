import type { Mark, Plan } from '@/api/types';
import { bytes, percent } from '@/format/units';
import { Panel } from '@/components/Panel';
import { record, rows } from './kinds';
import type { ViewProps } from './props';
import { colorOf, DeviceName, MethodEvents } from './parts';
import { blocksOf, type Block } from './slots';
import classes from './views.module.css';

const ABOUT: Record<Block['state'], string> = {
  resident: 'always in memory',
  loaded: 'streamed, in memory now',
  disk: 'streamed, on disk now',
};

/** Methods that stream layers from disk: which blocks are in every device's memory, and which come and go. */
export function SlotsView({ plan, devices, data }: ViewProps) {
  const shown = devices
    .map((device, rank) => ({
      device,
      rank,
      blocks: blocksOf(plan, rank, data?.device(device.name)?.lanes.compute ?? null),
      live: data?.device(device.name),
    }))
    .filter(({ blocks }) => blocks.length > 0);
  const marks = data?.methodMarks.toArray() ?? [];
  const streaming = shown.some(({ blocks }) => blocks.some((block) => block.state !== 'resident'));
  return (
    <Panel
      title="Slots"
      testId="view-slots"
      about={
        streaming
          ? 'blocks of weights that stay, and blocks that share a slot and stream from disk'
          : 'everything fits: no layer has to stream from disk'
      }
    >
      <div
        className={classes.grid}
        style={{
          gridTemplateColumns: 'max-content minmax(120px, auto) repeat(3, max-content)',
          columnGap: 26,
          rowGap: 8,
          justifyContent: 'start',
        }}
      >
        {['device', 'layers', 'slots', 'read from disk', 'loading'].map((head, at) => (
          <span key={head} className={`${classes.dim} ${at > 1 ? classes.right : ''}`}>
            {head}
          </span>
        ))}
        {shown.map(({ device, rank, blocks, live }) => (
          <Row
            key={device.name}
            name={device.name}
            rank={rank}
            blocks={blocks}
            slots={slotsOf(plan, rank)}
            gone={live !== undefined && live.failedAt_s !== null}
            loaded={live ? bytes(live.loadedBytes) : '–'}
            busy={live && data && data.time_s > 0 ? percent(live.loading_s / data.time_s) : '–'}
          />
        ))}
      </div>
      <div className={classes.legend}>
        {(Object.keys(ABOUT) as Block['state'][]).map((state) => (
          <span key={state}>
            <span
              className={classes.block}
              data-state={state}
              style={{ ...colorOf(0), minWidth: 22, height: 14 }}
            />
            {ABOUT[state]}
          </span>
        ))}
        <span>a: attention, f: feed-forward of a layer</span>
      </div>
      <MethodEvents marks={marks} describe={described} />
    </Panel>
  );
}

interface RowProps {
  name: string;
  rank: number;
  blocks: Block[];
  slots: string;
  loaded: string;
  busy: string;
  gone: boolean;
}

function Row({ name, rank, blocks, slots, loaded, busy, gone }: RowProps) {
  return (
    <>
      <DeviceName rank={rank} name={name} gone={gone} />
      <div className={classes.blocks} style={colorOf(rank)}>
        {blocks.map((block) => (
          <span
            key={`${block.layer} ${block.part}`}
            className={classes.block}
            data-state={block.state}
            data-newest={block.newest || undefined}
            title={`layer ${block.layer}${block.part === 'both' ? '' : ` ${block.part}`}: ${ABOUT[block.state]}`}
            data-testid={`block-${name}-${block.layer}-${block.part}`}
          >
            {block.layer}
            {block.part === 'both' ? '' : block.part === 'attention' ? 'a' : 'f'}
          </span>
        ))}
      </div>
      <span className={classes.right} style={{ fontSize: 13 }}>
        {slots}
      </span>
      <span className={classes.right} style={{ fontSize: 13 }}>
        {loaded}
      </span>
      <span className={classes.right} style={{ fontSize: 13 }}>
        {busy}
      </span>
    </>
  );
}

/** Slots that streamed blocks share, or the window of blocks kept ahead. */
function slotsOf(plan: Plan, rank: number): string {
  const { slots, window, streams } = plan.layout;
  if (slots !== undefined) return String(record(slots)[String(rank)] || '–');
  return rows(record(streams)[String(rank)]).length > 0 ? `window ${String(window)}` : '–';
}

function described({ name, device, facts }: Mark): string {
  if (name === 'threshold')
    return `${device} passes ${facts['tokens']} tokens: more of its blocks stream, to make room for the KV cache`;
  if (name === 'kv_transfer')
    return `${device} parks ${facts['rows']} rows of its KV cache at ${String(facts['target'])}`;
  if (name === 'unpinned')
    return `${device} streams more blocks from ${facts['rows']} rows on: ${facts['pinned']} stay`;
  if (name === 'recomputed') return `${device} computes ${facts['rows']} evicted rows again`;
  return `${device}: ${name.replaceAll('_', ' ')}`;
}
