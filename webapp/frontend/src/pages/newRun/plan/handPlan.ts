/** A plan made by hand, edited: pure functions. The sums of layers, heads, columns and rows never change. */
import type { DeviceShare, EditablePlan, PlanByHand } from '@/api/types';

export type UnitSize = EditablePlan['units'][number];
export type Unit = UnitSize['name'];

/** Units that are weighed against a sum; the others are limits of each device. */
export const isDivided = (unit: Unit): boolean => unit !== 'lent_heads';

export const TITLES: Record<Unit, string> = {
  layers: 'layers',
  heads: 'heads',
  columns: 'columns',
  experts: 'experts',
  rows: 'rows',
  lent_heads: 'lent heads',
};

const UNITS = Object.keys(TITLES) as Unit[];

export const amount = (share: DeviceShare | undefined, unit: Unit): number => share?.[unit] ?? 0;

export function total(plan: PlanByHand, unit: Unit): number {
  return plan.devices.reduce((sum, share) => sum + amount(share, unit), 0);
}

/** The plan with a row for every worker; those that it does not name are the last ones. */
export function completed(plan: PlanByHand, workers: readonly string[]): PlanByHand {
  const named = new Set(plan.devices.map(({ device }) => device));
  const others = workers.filter((device) => !named.has(device)).map((device) => ({ device }) as DeviceShare);
  return { ...plan, devices: [...plan.devices, ...others] };
}

/** The parameter `plan`: only what is said, and only devices that have something or generate. The first device
 * of a plan of columns alone is the primary, whatever it has.
 */
export function toParam(plan: PlanByHand): Record<string, unknown> {
  const has = (share: DeviceShare) => UNITS.filter((unit) => amount(share, unit) > 0);
  const led = plan.devices.every((share) => has(share).every((unit) => unit === 'columns'));
  const takesPart = (share: DeviceShare, index: number) =>
    has(share).length > 0 || share.device === plan.decoder || (led && index === 0);
  const devices = plan.devices
    .filter(takesPart)
    .map((share) => Object.fromEntries(Object.entries(said(share)).filter(([, one]) => one !== 0)));
  return { ...said(plan), devices };
}

function said(value: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null && one !== undefined));
}

/** Gives device `index` so many units, in steps; the devices behind it, then those before it, give or take the
 * difference.
 */
export function withAmount(plan: PlanByHand, unit: UnitSize, index: number, wanted: number): PlanByHand {
  const amounts = plan.devices.map((share) => amount(share, unit.name));
  const most = isDivided(unit.name) ? total(plan, unit.name) : Infinity;
  const value = Math.max(0, Math.min(stepped(wanted, unit), most));
  let due = value - (amounts[index] ?? 0);
  amounts[index] = value;
  const count = amounts.length;
  for (let away = 1; away < count && due !== 0 && isDivided(unit.name); away += 1) {
    const other = index + away < count ? index + away : count - 1 - away;
    const before = amounts[other] ?? 0;
    amounts[other] = Math.max(0, before - due);
    due -= before - (amounts[other] ?? 0);
  }
  return replaced(plan, unit.name, amounts);
}

/** Moves the boundary behind device `index` to `at` units from the start, between its neighbours' boundaries. */
export function withBoundary(plan: PlanByHand, unit: UnitSize, index: number, at: number): PlanByHand {
  const amounts = plan.devices.map((share) => amount(share, unit.name));
  const start = amounts.slice(0, index).reduce((sum, one) => sum + one, 0);
  const both = (amounts[index] ?? 0) + (amounts[index + 1] ?? 0);
  const first = Math.max(0, Math.min(stepped(at - start, unit), both));
  amounts[index] = first;
  amounts[index + 1] = both - first;
  return replaced(plan, unit.name, amounts);
}

/** Moves so many units from one device to another, as many as it has. */
export function moved(plan: PlanByHand, unit: UnitSize, from: string, to: string, count: number): PlanByHand {
  const giver = plan.devices.find(({ device }) => device === from);
  if (!giver || from === to || !plan.devices.some(({ device }) => device === to)) return plan;
  const given = Math.max(0, Math.min(stepped(count, unit), amount(giver, unit.name)));
  const amounts = plan.devices.map(
    (share) => amount(share, unit.name) + (share.device === to ? given : share.device === from ? -given : 0),
  );
  return replaced(plan, unit.name, amounts);
}

/** All layers on one device: for strategies that compute on one. */
export function alone(plan: PlanByHand, unit: UnitSize, device: string): PlanByHand {
  const whole = total(plan, unit.name);
  return replaced(
    plan,
    unit.name,
    plan.devices.map((share) => (share.device === device ? whole : 0)),
  );
}

const stepped = (value: number, { step }: UnitSize) => Math.round(value / step) * step;

/** What is streamed on changed devices, segments, and copies of shares the strategy chooses anew. */
function replaced(plan: PlanByHand, unit: Unit, amounts: readonly number[]): PlanByHand {
  const devices = plan.devices.map((share, i) => {
    const next = amounts[i] ?? 0;
    return next === amount(share, unit) ? share : { ...share, [unit]: next, streams: null };
  });
  const same = devices.every((share, i) => share === plan.devices[i]);
  return same ? plan : { ...plan, devices, backups: null, segments: null };
}

/** Further choices of a plan, in words. */
export function furtherOf(plan: PlanByHand): string[] {
  const words = plan.devices.flatMap((share) => [
    ...(share.streams?.length ? [`${share.device} streams ${share.streams.join(', ')} per stage`] : []),
    ...(share.helpers?.length ? [`${share.helpers.join(', ')} may attend heads for ${share.device}`] : []),
  ]);
  const settings = (['segments', 'split_layers', 'embedding', 'head', 'decoder'] as const).flatMap((name) =>
    plan[name] ? [`${name.replace('_', ' ')}: ${plan[name]}`] : [],
  );
  const copies = (plan.backups ?? []).map(
    (one) => `${one.device} has copies of ${one.columns} columns of ${one.of}`,
  );
  return [...settings, ...words, ...copies];
}
