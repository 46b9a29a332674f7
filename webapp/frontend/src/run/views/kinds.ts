/** Which picture explains a plan: the one that its strategy names, else the one that its data allow. */
import type { Plan } from '@/api/types';

export const VIEWS = ['heads', 'bands', 'slots', 'shares', 'tree', 'split', 'pipeline'] as const;
export type ViewKind = (typeof VIEWS)[number];

export function viewOf(plan: Plan): ViewKind | null {
  const named = VIEWS.find((view) => view === plan.extra['view']);
  if (named) return named;
  if (Array.isArray(plan.extra['shards'])) return 'bands';
  if (list(plan.extra['stages']).length > 1) return 'pipeline';
  if (Array.isArray(plan.extra['columns']) && Array.isArray(plan.extra['group'])) return 'split';
  return null;
}

/** `plan.extra` is JSON of the strategy's own making: these read it without believing in it. */
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
