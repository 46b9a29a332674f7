/** Which view draws a plan: the layout's kind decides. */
import type { Plan } from '@/api/types';

export const VIEWS = ['heads', 'bands', 'slots', 'shares', 'tree', 'split', 'pipeline'] as const;
export type ViewKind = (typeof VIEWS)[number];

/** By the kind of a layout (`kind` of the subclasses of `Layout` in engine/strategies). */
const VIEW_OF_KIND: Readonly<Record<string, ViewKind>> = {
  heads: 'heads',
  positions: 'bands',
  segments: 'slots',
  sliding_window: 'slots',
  pipeline_offload: 'slots',
  shares: 'shares',
  tree: 'tree',
  galaxy: 'split',
  tensor_parallel: 'split',
  pipeline: 'pipeline',
  planned_pipeline: 'pipeline',
};

/** Null where there is nothing to draw: one device, or a pipeline of one stage. */
export function viewOf(plan: Plan): ViewKind | null {
  const view = VIEW_OF_KIND[String(plan.layout['kind'])] ?? null;
  return view === 'pipeline' && list(plan.layout['stages']).length < 2 ? null : view;
}

/** The functions below read values of a layout and check their types. */
export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function numbers(value: unknown): number[] {
  return list(value).map(Number);
}

/** Lists of numbers, such as [device, start, stop]. */
export function rows(value: unknown): number[][] {
  return list(value).map(numbers);
}

export function record(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === 'object' && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

/** `n` bounds of ranks in order → [rank, start, stop] of those that have something. */
export function sharesOf(group: readonly number[], bounds: readonly number[]): [number, number, number][] {
  return group.flatMap((rank, at) => {
    const [start, stop] = [bounds[at] ?? 0, bounds[at + 1] ?? 0];
    return stop > start ? [[rank, start, stop] as [number, number, number]] : [];
  });
}
