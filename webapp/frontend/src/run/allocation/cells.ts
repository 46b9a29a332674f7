/** A plan as a table: what part of which layer each device holds and computes. */
import type { ModelSpec, Part, Phase, Plan, Slice } from '@/api/types';

/** A stretch [from, to) of a part, as fractions of the whole. */
export interface Piece {
  from: number;
  to: number;
  slice: Slice;
  kind: 'work' | 'resident' | 'offloaded' | 'backup';
}

export interface Column {
  key: string;
  layer: number;
  label: string;
  parts: readonly Part[];
}

export interface Allocation {
  columns: Column[];
  /** Pieces of device × column × part; work after holdings, so that it is drawn on top. */
  pieces: (device: number, column: Column, part: Part) => Piece[];
  /** Share of the layers that a device computes: the mean over all their parts. */
  share: (device: number) => number;
  /** Axes that slices use, with their sizes: 8 heads, 2048 columns, 200 positions. */
  axes: { axis: string; size: number }[];
}

export type ShownPhase = Exclude<Phase, 'both'>;

/** Whether prefill and decode are computed by different devices or slices. */
export function phasesDiffer(plan: Plan): boolean {
  return plan.work.some((work) => work.phase !== 'both');
}

export function allocate(plan: Plan, model: ModelSpec, phase: ShownPhase): Allocation {
  const works = plan.work.filter((work) => work.phase === 'both' || work.phase === phase);
  const positions = Math.max(
    0,
    ...works.map((work) => (work.slice.axis === 'positions' ? work.slice.stop : 0)),
  );
  const sizes = {
    all: 1,
    heads: model.num_heads,
    columns: model.intermediate_size,
    experts: model.num_experts,
    positions,
  };
  const table = new Map<string, Piece[]>();
  const put = (device: number, slice: Slice, kind: Piece['kind']) => {
    const key = keyOf(device, slice.layer, slice.part);
    const size = slice.part === 'lm_head' ? model.vocab_size : sizes[slice.axis];
    const whole = slice.axis === 'all' || size === 0;
    const from = whole ? 0 : slice.start / size;
    const to = whole ? 1 : slice.stop / size;
    const pieces = table.get(key);
    if (pieces) pieces.push({ from, to, slice, kind });
    else table.set(key, [{ from, to, slice, kind }]);
  };
  for (const holding of plan.holdings) {
    if (!holding.slice.draft) put(holding.device, holding.slice, holding.home); // its layers are others
  }
  for (const work of works) put(work.device, work.slice, 'work');
  const used = new Set(works.map((work) => work.slice.axis).filter((axis) => axis !== 'all'));
  return {
    columns: columnsOf(model),
    pieces: (device, column, part) => table.get(keyOf(device, column.layer, part)) ?? [],
    share: (device) => shareOf(works, device, model.num_layers, sizes),
    axes: [...used].map((axis) => ({ axis, size: sizes[axis] })),
  };
}

function columnsOf(model: ModelSpec): Column[] {
  const layers = Array.from({ length: model.num_layers }, (_, layer): Column => ({
    key: String(layer),
    layer,
    label: String(layer),
    parts: ['attention', 'ffn'],
  }));
  const embed: Column = { key: 'embed', layer: -1, label: 'embed', parts: ['embed'] };
  const head: Column = { key: 'lm_head', layer: -1, label: 'head', parts: ['lm_head'] };
  const tower: Column[] = model.vision?.tower
    ? [{ key: 'vision', layer: -1, label: 'vision', parts: ['vision'] }]
    : [];
  return [...tower, embed, ...layers, ...(model.has_head || model.num_classes ? [head] : [])];
}

function shareOf(
  works: Plan['work'],
  device: number,
  layers: number,
  sizes: Record<Slice['axis'], number>,
): number {
  let sum = 0;
  for (const { device: by, slice } of works) {
    if (by !== device || slice.layer < 0) continue;
    sum += slice.axis === 'all' ? 1 : (slice.stop - slice.start) / Math.max(sizes[slice.axis], 1);
  }
  return sum / (2 * layers);
}

function keyOf(device: number, layer: number, part: Part): string {
  return `${device}/${layer}/${part}`;
}

const ENDS: Partial<Record<Part, string>> = {
  embed: 'embedding',
  vision: 'vision tower and projector',
  lm_head: 'head',
};

/** `heads 0–3 of layer 2, attention`: a slice in words. */
export function describeSlice(slice: Slice): string {
  const what = slice.layer < 0 ? (ENDS[slice.part] ?? slice.part) : `layer ${slice.layer} ${slice.part}`;
  if (slice.axis === 'all') return what;
  const count = slice.stop - slice.start;
  const unit = count === 1 ? slice.axis.slice(0, -1) : slice.axis;
  const range = count === 1 ? String(slice.start) : `${slice.start}–${slice.stop - 1}`;
  return `${what}, ${count} ${unit} (${range})`;
}
