/** A plan divided by hand: the parameter `plan` of the strategies that take one. Totals never change. */
import type { Plan } from '@/api/types';

export type Unit = 'layers' | 'heads' | 'columns' | 'rows';
/** One device's share, by unit. */
export type Share = { device: string } & Partial<Record<Unit, number>>;
export interface Division {
  kind: 'stages' | 'shares' | 'positions';
  shares: Share[];
}

const UNITS: Record<Division['kind'], readonly Unit[]> = {
  stages: ['layers'],
  shares: ['heads', 'columns'],
  positions: ['rows'],
};

export const unitsOf = (division: Division): readonly Unit[] => UNITS[division.kind];

/** The division of a plan; devices that have no share are the last ones. Null if it has another form. */
export function divisionOf(
  plan: Plan,
  devices: readonly string[],
  workers: readonly string[],
): Division | null {
  const { layout } = plan;
  const name = (rank: number) => devices[rank] ?? '';
  if (layout.kind === 'pipeline' || layout.kind === 'planned_pipeline') {
    const shares = layout.stages.map(({ device, start, stop }) => ({
      device: name(device),
      layers: stop - start,
    }));
    return completed({ kind: 'stages', shares }, workers);
  }
  if (layout.kind === 'tensor_parallel') {
    const shares = layout.group.map((rank, i) => ({
      device: name(rank),
      heads: between(layout.heads, i),
      columns: between(layout.columns, i),
    }));
    return completed({ kind: 'shares', shares }, workers);
  }
  if (layout.kind === 'positions') {
    const shares = layout.shards.map(({ device, start, stop }) => ({
      device: name(device),
      rows: stop - start,
    }));
    return completed({ kind: 'positions', shares }, workers);
  }
  return null;
}

const between = (bounds: readonly number[], i: number) => (bounds[i + 1] ?? 0) - (bounds[i] ?? 0);

function completed(division: Division, workers: readonly string[]): Division {
  const named = new Set(division.shares.map(({ device }) => device));
  const none = Object.fromEntries(unitsOf(division).map((unit) => [unit, 0]));
  const others = workers.filter((device) => !named.has(device)).map((device) => ({ device, ...none }));
  return { ...division, shares: [...division.shares, ...others] };
}

/** The parameter `plan` that means this division. */
export function toParam({ kind, shares }: Division): Record<string, unknown> {
  return { kind, [kind]: shares };
}

/** The division that a parameter `plan` means; null if there is none. */
export function fromParam(value: unknown): Division | null {
  if (typeof value !== 'object' || value === null || !('kind' in value)) return null;
  const kind = value.kind as Division['kind'];
  const shares = (value as Record<string, unknown>)[kind];
  return kind in UNITS && Array.isArray(shares) ? { kind, shares: shares as Share[] } : null;
}

export const amount = (share: Share | undefined, unit: Unit): number => share?.[unit] ?? 0;

export function total(division: Division, unit: Unit): number {
  return division.shares.reduce((sum, share) => sum + amount(share, unit), 0);
}

/** Gives device `index` so many units; the neighbour after it, or before it if it is the last one, gives or
 * takes the difference, and then the next ones.
 */
export function withAmount(division: Division, unit: Unit, index: number, wanted: number): Division {
  const amounts = division.shares.map((share) => amount(share, unit));
  const value = Math.max(0, Math.min(Math.round(wanted), total(division, unit)));
  let due = value - (amounts[index] ?? 0);
  amounts[index] = value;
  const count = amounts.length;
  for (let step = 1; step < count && due !== 0; step += 1) {
    const other = index + step < count ? index + step : count - 1 - step;
    const before = amounts[other] ?? 0;
    amounts[other] = Math.max(0, before - due);
    due -= before - (amounts[other] ?? 0);
  }
  return replaced(division, unit, amounts);
}

/** Moves the boundary behind device `index` to `at` units from the start, between its neighbours' boundaries. */
export function withBoundary(division: Division, unit: Unit, index: number, at: number): Division {
  const amounts = division.shares.map((share) => amount(share, unit));
  const start = amounts.slice(0, index).reduce((sum, one) => sum + one, 0);
  const both = (amounts[index] ?? 0) + (amounts[index + 1] ?? 0);
  const first = Math.max(0, Math.min(Math.round(at) - start, both));
  amounts[index] = first;
  amounts[index + 1] = both - first;
  return replaced(division, unit, amounts);
}

function replaced(division: Division, unit: Unit, amounts: readonly number[]): Division {
  return { ...division, shares: division.shares.map((share, i) => ({ ...share, [unit]: amounts[i] ?? 0 })) };
}
