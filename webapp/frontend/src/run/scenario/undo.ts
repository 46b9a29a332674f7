/** Takes back live changes: what a change replaced, found in the changes before it. Pure. */
import type { Change, ClusterSpec, LiveCommand, Mark } from '@/api/types';
import { isCalled, linkData, type DirectionData, type LinkData } from '@/run/data/parts';
import { changeOf } from './changes';

/** A change that was taken back: its place among the marks, how many there were then, and how many commands it took. */
export interface Undone {
  at: number;
  marks: number;
  commands: number;
}

type ByWay = Extract<Change, { kind: 'set_rate' | 'set_delay' | 'set_loss' }>;

/** The newest live change that can be taken back and neither was nor takes another one back; -1 if there is none. */
export function newestToUndo(
  marks: readonly Mark[],
  cluster: ClusterSpec,
  undone: readonly Undone[],
): number {
  const isLive = ({ facts }: Mark) => Boolean(facts['by']);
  const closed = new Set<number>();
  for (const { at, marks: before, commands } of undone) {
    closed.add(at);
    const own = marks.flatMap((mark, index) => (index >= before && isLive(mark) ? [index] : []));
    for (const index of own.slice(0, commands)) closed.add(index);
  }
  return marks.findLastIndex(
    (mark, at) => isLive(mark) && !closed.has(at) && undoOf(marks, at, cluster).length > 0,
  );
}

/** The commands that restore what was before the change that mark `at` confirms; none where nothing can. */
export function undoOf(marks: readonly Mark[], at: number, cluster: ClusterSpec): LiveCommand[] {
  const change = changeOf(marks[at]!);
  if (!change) return [];
  const before = marks.slice(0, at).flatMap((mark) => changeOf(mark) ?? []);
  switch (change.kind) {
    case 'set_rate':
    case 'set_delay':
    case 'set_loss':
      return byWay(change, before, cluster);
    case 'set_jitter': {
      const link = cluster.links.find((one) => isCalled(linkData(one), change.link));
      const last = before.findLast(
        (one) => one.kind === change.kind && link !== undefined && isCalled(linkData(link), one.link),
      );
      const jitter_s = last?.kind === 'set_jitter' ? last.jitter_s : (link?.jitter_s ?? 0);
      return [{ kind: change.kind, link: change.link, jitter_s }];
    }
    case 'link_down':
      return [{ kind: 'link_up', link: change.link }];
    case 'link_up':
      return [{ kind: 'link_down', link: change.link }];
    case 'slow_device': {
      const last = before.findLast((one) => one.kind === change.kind && one.device === change.device);
      return [{ ...change, factor: last?.kind === 'slow_device' ? last.factor : 1 }].map(withoutTime);
    }
    case 'drop_device':
    case 'freeze_device':
      return [{ kind: 'join_device', device: change.device }];
    case 'join_device':
      return []; // its memory is empty: to drop it again is another failure
  }
}

function byWay(change: ByWay, before: readonly Change[], cluster: ClusterSpec): LiveCommand[] {
  const link = cluster.links.map(linkData).find((one) => isCalled(one, change.link));
  if (!link) return [];
  const ways = change.direction === 'both' ? (['forward', 'backward'] as const) : [change.direction];
  const values = ways.map((way) => valueBefore(change, way, before, link));
  const same = ways.length === 2 && values[0] === values[1];
  return same
    ? [withoutTime(withNumber(change, values[0]!))]
    : ways.map((direction, index) => withoutTime({ ...withNumber(change, values[index]!), direction }));
}

function valueBefore(
  change: ByWay,
  way: 'forward' | 'backward',
  before: readonly Change[],
  link: LinkData,
): number {
  const last = before.findLast(
    (one) =>
      one.kind === change.kind &&
      isCalled(link, one.link) &&
      (one.direction === 'both' || one.direction === way),
  );
  return last ? numberOf(last as ByWay) : drawn(change.kind, link[way]);
}

function drawn(kind: ByWay['kind'], side: DirectionData): number {
  return { set_rate: side.set_bit_per_s, set_delay: side.delay_s, set_loss: side.loss_frac }[kind];
}

function numberOf(change: ByWay): number {
  if (change.kind === 'set_rate') return change.bit_per_s;
  return change.kind === 'set_delay' ? change.delay_s : change.loss_frac;
}

function withNumber(change: ByWay, value: number): ByWay {
  if (change.kind === 'set_rate') return { ...change, bit_per_s: value };
  return change.kind === 'set_delay' ? { ...change, delay_s: value } : { ...change, loss_frac: value };
}

function withoutTime(change: Change): LiveCommand {
  const command: Partial<Change> = { ...change };
  delete command.at_s;
  return command as LiveCommand;
}
