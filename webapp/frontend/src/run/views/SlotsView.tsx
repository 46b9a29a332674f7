import type { LayoutOf, Mark } from '@/api/types';
import { bytes, percent } from '@/format/units';
import { Panel } from '@/components/Panel';
import { text } from '@/run/data/facts';
import type { ViewProps } from './props';
import { colorOf, DeviceName, MethodEvents } from './parts';
import { blocksOf, type Block } from './slots';
import classes from './views.module.css';

type Layout = LayoutOf<'pipeline_offload' | 'segments' | 'sliding_window'>;

const ABOUT: Record<Block['state'], string> = {
  resident: 'always in memory',
  loaded: 'streamed, in memory now',
  disk: 'streamed, on disk now',
};

/** Strategies that stream weights from disk: which blocks are in the memory of each device, which take turns. */
export function SlotsView({ layout, holdings, devices, data }: ViewProps<Layout>) {
  const shown = devices
    .map((device, rank) => ({
      device,
      rank,
      blocks: blocksOf(layout, holdings, rank, data?.device(device.name)?.lanes.compute ?? null),
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
          ? 'blocks of weights that stay in memory, and blocks that take turns in a slot'
          : 'all weights fit: no layer streams from disk'
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
            slots={slotsOf(layout, rank)}
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

/** The number of slots that streamed blocks share, or the window of blocks that are loaded ahead. */
function slotsOf(layout: Layout, rank: number): string {
  if (layout.kind !== 'sliding_window') return String(layout.slots[String(rank)] || '–');
  return layout.streams[String(rank)]?.length ? `window ${layout.window}` : '–';
}

function described({ name, device, facts }: Mark): string {
  const rows = text(facts['rows']);
  switch (name) {
    case 'threshold':
      return `${device} reached ${text(facts['tokens'])} tokens: it streams more blocks, to make room for the KV cache`;
    case 'kv_transfer':
      return `${device} moves ${rows} rows of its KV cache to ${text(facts['target'])}`;
    case 'unpinned':
      return `${device} streams more blocks from ${rows} rows on: ${text(facts['pinned'])} stay in memory`;
    case 'recomputed':
      return `${device} recomputes ${rows} evicted rows`;
    default:
      return `${device}: ${name.replaceAll('_', ' ')}`;
  }
}
