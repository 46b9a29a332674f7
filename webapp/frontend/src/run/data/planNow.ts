/** The plan in force: the newest plan after what its method changed by itself, without devices that have failed. */
import type { Mark, Plan, Slice } from '@/api/types';
import { numbers, rows } from './facts';
import { PRUNED, type HeadRow } from './headMap';

type Work = Plan['work'];

export interface Changes {
  /** Marks of the method since the plan began, in order. */
  marks: readonly Mark[];
  /** The newest allocation of heads by layer. */
  heads: ReadonlyMap<number, HeadRow>;
  /** Ranks of devices that have failed and have not come back. */
  lost: ReadonlySet<number>;
}

/** The same object if nothing has changed. */
export function planNow(plan: Plan, { marks, heads, lost }: Changes): Plan {
  const present = <T extends { device: number }>(one: T) => !lost.has(one.device);
  const { work, holdings } = changed(plan, marks, heads);
  const kept = { work: work.filter(present), holdings: holdings.filter(present) };
  const same =
    work === plan.work &&
    holdings === plan.holdings &&
    kept.work.length === work.length &&
    kept.holdings.length === holdings.length;
  return same ? plan : { ...plan, ...kept };
}

function changed(
  plan: Plan,
  marks: readonly Mark[],
  heads: Changes['heads'],
): Pick<Plan, 'work' | 'holdings'> {
  const { layout } = plan;
  switch (layout.kind) {
    case 'shares':
      return shared(plan, layout.shards.map(([rank = 0]) => rank)[0] ?? 0, marks);
    case 'positions':
      return { ...plan, work: marks.reduce(repartitioned, plan.work) };
    case 'heads':
      return { ...plan, work: attended(plan.work, heads) };
    default:
      return plan;
  }
}

/** AdaptLink: after a promotion the copies serve; `serving` and `copies` are [rank, start, stop] of columns. */
function shared(plan: Plan, primary: number, marks: readonly Mark[]): Pick<Plan, 'work' | 'holdings'> {
  const newest = marks.findLast((mark) => 'serving' in mark.facts);
  if (!newest) return plan;
  const serving = rows(newest.facts['serving']);
  const copies = rows(newest.facts['copies']);
  const isMoved = (device: number, slice: Slice) => slice.axis === 'columns' && device !== primary;
  const layersOf = (list: readonly { device: number; slice: Slice }[]) => [
    ...new Map(list.filter((one) => isMoved(one.device, one.slice)).map(({ slice }) => [slice.layer, slice])),
  ];
  const movedWork = layersOf(plan.work).flatMap(([layer, slice]) =>
    serving.map(([device = 0, start = 0, stop = 0]): Work[number] => ({
      ...plan.work.find((one) => one.slice.layer === layer && isMoved(one.device, one.slice))!,
      device,
      slice: { ...slice, start, stop },
    })),
  );
  const held = [
    ...serving.map((piece) => [piece, 'resident'] as const),
    ...copies.map((piece) => [piece, 'backup'] as const),
  ];
  const movedHoldings = layersOf(plan.holdings).flatMap(([, slice]) =>
    held.map(([[device = 0, start = 0, stop = 0], home]) => ({
      device,
      slice: { ...slice, start, stop },
      home,
    })),
  );
  return {
    work: [...plan.work.filter((one) => !isMoved(one.device, one.slice)), ...movedWork],
    holdings: [...plan.holdings.filter((one) => !isMoved(one.device, one.slice)), ...movedHoldings],
  };
}

/** Voltage: from a layer on, the positions are divided at new bounds, in the order of the devices before. */
function repartitioned(work: Work, mark: Mark): Work {
  const bounds = numbers(mark.facts['bounds']);
  const from = Number(mark.facts['layer']);
  if (mark.name !== 'repartitioned' || bounds.length < 2) return work;
  const order = [
    ...new Set(
      work
        .filter(({ slice }) => slice.axis === 'positions')
        .toSorted((a, b) => a.slice.start - b.slice.start || a.slice.stop - b.slice.stop)
        .map(({ device }) => device),
    ),
  ];
  if (bounds.length !== order.length + 1) return work;
  return work.map((one) => {
    const at = order.indexOf(one.device);
    if (one.slice.axis !== 'positions' || one.slice.layer < from || at < 0) return one;
    return { ...one, slice: { ...one.slice, start: bounds[at]!, stop: bounds[at + 1]! } };
  });
}

/** EdgeFormer: the devices that attend the heads of each layer, as runs of neighbouring heads. */
function attended(work: Work, heads: Changes['heads']): Work {
  if (heads.size === 0) return work;
  const known = (slice: Slice) =>
    slice.part === 'attention' && slice.axis === 'heads' && heads.has(slice.layer);
  const kept = work.filter(({ slice }) => !known(slice));
  const layers = [...new Set(work.filter(({ slice }) => known(slice)).map(({ slice }) => slice.layer))];
  const moved = layers.flatMap((layer) => {
    const template = work.find(({ slice }) => slice.layer === layer && known(slice))!;
    return runsOf(heads.get(layer)!.deviceOf).map(([device, start, stop]): Work[number] => ({
      ...template,
      device,
      slice: { ...template.slice, start, stop },
    }));
  });
  return [...kept, ...moved];
}

function runsOf(deviceOf: readonly number[]): [number, number, number][] {
  const runs: [number, number, number][] = [];
  deviceOf.forEach((device, head) => {
    const last = runs.at(-1);
    if (device === PRUNED) return;
    if (last && last[0] === device && last[2] === head) last[2] = head + 1;
    else runs.push([device, head, head + 1]);
  });
  return runs;
}
