/** Which blocks of weights are in a device's memory: initially from the plan, then from loads and evictions. */
import type { LayoutOf, Plan } from '@/api/types';
import type { SpanRing } from '@/run/data/rings';

type Layout = LayoutOf<'pipeline_offload' | 'segments' | 'sliding_window'>;
type Holdings = Plan['holdings'];

type BlockState = 'resident' | 'loaded' | 'disk';

export interface Block {
  layer: number;
  part: 'attention' | 'ffn' | 'both';
  state: BlockState;
  /** The one that was loaded last. */
  newest: boolean;
}

interface Piece {
  layer: number;
  part: 'attention' | 'ffn';
  streamed: boolean;
  inMemory: boolean;
}

/** Far enough back for one load or eviction of every block. */
const MAX_LOOK_BACK = 4_000;

/** The blocks of device `rank` by layer. The parts of a layer are one block if they are in the same state. */
export function blocksOf(layout: Layout, holdings: Holdings, rank: number, ring: SpanRing | null): Block[] {
  const pieces = new Map<string, Piece>();
  const streams = streamedOf(layout, rank);
  for (const { device, slice, home } of holdings) {
    if (device !== rank || slice.layer < 0 || (slice.axis !== 'all' && slice.stop === slice.start)) continue;
    if (slice.part !== 'attention' && slice.part !== 'ffn') continue;
    const key = `${slice.layer} ${slice.part}`;
    const old = pieces.get(key);
    const away = home === 'offloaded';
    const streamed = away || streams.has(key) || (old?.streamed ?? false);
    pieces.set(key, {
      layer: slice.layer,
      part: slice.part,
      streamed,
      inMemory: !away && (old?.inMemory ?? true),
    });
  }
  const newest = ring ? replay(pieces, ring) : null;
  const sorted = [...pieces.values()].toSorted((a, b) => a.layer - b.layer || a.part.localeCompare(b.part));
  return join(
    sorted.map((piece) => ({
      layer: piece.layer,
      part: piece.part,
      newest: newest === `${piece.layer} ${piece.part}`,
      state: !piece.streamed ? 'resident' : piece.inMemory ? 'loaded' : 'disk',
    })),
  );
}

/** Blocks that take turns in a slot, although some are in memory at the start. */
function streamedOf(layout: Layout, rank: number): Set<string> {
  if (layout.kind !== 'pipeline_offload') return new Set();
  const first = layout.stages.find((stage) => stage.device === rank)?.start ?? 0;
  const layers = (layout.cycles[String(rank)] ?? []).flat().map((position) => first + position);
  return new Set(layers.flatMap((layer) => [`${layer} attention`, `${layer} ffn`]));
}

/** The newest load or eviction of every block decides; returns the block that was loaded last. */
function replay(pieces: Map<string, Piece>, ring: SpanRing): string | null {
  const seen = new Set<string>();
  let newest: string | null = null;
  const oldest = Math.max(0, ring.length - MAX_LOOK_BACK);
  for (let index = ring.length - 1; index >= oldest && seen.size < pieces.size; index -= 1) {
    const kind = ring.kindAt(index);
    if (kind !== 'load' && kind !== 'evict') continue;
    const { layer, name } = ring.view(index);
    const key = `${layer} ${name}`;
    const piece = pieces.get(key);
    if (!piece || seen.has(key)) continue;
    seen.add(key);
    piece.streamed = true;
    piece.inMemory = kind === 'load';
    if (kind === 'load') newest ??= key;
  }
  return newest;
}

function join(blocks: Block[]): Block[] {
  return blocks.reduce<Block[]>((done, block) => {
    const last = done.at(-1);
    if (last && last.layer === block.layer && last.state === block.state) {
      done[done.length - 1] = { ...last, part: 'both', newest: last.newest || block.newest };
    } else done.push(block);
    return done;
  }, []);
}
