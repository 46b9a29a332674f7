/** Which blocks of weights are in a device's memory: the plan says how it begins, loads and evictions go on. */
import type { Plan } from '@/api/types';
import type { SpanRing } from '@/run/data/rings';

export type BlockState = 'resident' | 'loaded' | 'disk';

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

/** Far enough for every block of a pass over the layers; older loads are overtaken by newer ones. */
const MAX_LOOK_BACK = 4_000;

/** Blocks of device `rank` in the order of the layers; parts of a layer that are in the same state are one block. */
export function blocksOf(plan: Plan, rank: number, ring: SpanRing | null): Block[] {
  const pieces = new Map<string, Piece>();
  const streams = streamedOf(plan, rank);
  for (const { device, slice, home } of plan.holdings) {
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

/** Blocks that come and go from the start although they are in memory then: whoever shares a slot with one that is not. */
function streamedOf(plan: Plan, rank: number): Set<string> {
  const away = new Set<string>();
  const cycles = plan.layout['cycles'] as Record<string, number[][]> | undefined;
  const stage = (plan.layout['segments'] as number[][][] | undefined)?.[0]?.find(
    ([device]) => device === rank,
  );
  for (const cycle of cycles?.[String(rank)] ?? []) {
    for (const position of cycle)
      for (const part of ['attention', 'ffn']) away.add(`${(stage?.[1] ?? 0) + position} ${part}`);
  }
  return away;
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
