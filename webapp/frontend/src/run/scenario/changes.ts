/** A scenario as rows of timed changes that can be edited; pure. */
import type { Change, ClusterSpec, Mark } from '@/api/types';
import { text } from '@/run/data/facts';
import { linkName } from '@/format/links';
import { duration, percent } from '@/format/units';

export type Kind = Change['kind'];

export const KINDS: readonly { value: Kind; label: string; subject: 'link' | 'device'; unit: string }[] = [
  { value: 'set_rate', label: 'rate', subject: 'link', unit: 'Mbit/s' },
  { value: 'set_delay', label: 'one-way delay', subject: 'link', unit: 'ms' },
  { value: 'set_loss', label: 'packet loss', subject: 'link', unit: '%' },
  { value: 'set_jitter', label: 'jitter', subject: 'link', unit: 'ms' },
  { value: 'link_down', label: 'cut', subject: 'link', unit: '' },
  { value: 'link_up', label: 'restore', subject: 'link', unit: '' },
  { value: 'slow_device', label: 'takes × as long', subject: 'device', unit: '×' },
  { value: 'drop_device', label: 'fails', subject: 'device', unit: '' },
  { value: 'freeze_device', label: 'freezes', subject: 'device', unit: '' },
  { value: 'join_device', label: 'joins', subject: 'device', unit: '' },
];

/** The change of the scenario that a mark confirms; null if it confirms none. */
export function changeOf({ time_s: at_s, name, device, facts }: Mark): Change | null {
  const link = text(facts['link']);
  const given = facts['direction'];
  const direction = given === 'forward' || given === 'backward' ? given : 'both';
  switch (name) {
    case 'link_changed': {
      const { bit_per_s, delay_s, loss_frac, jitter_s } = facts;
      if (typeof bit_per_s === 'number') return { kind: 'set_rate', at_s, link, bit_per_s, direction };
      if (typeof delay_s === 'number') return { kind: 'set_delay', at_s, link, delay_s, direction };
      if (typeof jitter_s === 'number') return { kind: 'set_jitter', at_s, link, jitter_s };
      return typeof loss_frac === 'number' ? { kind: 'set_loss', at_s, link, loss_frac, direction } : null;
    }
    case 'link_down':
    case 'link_up':
      return { kind: name, at_s, link };
    case 'device_changed':
      return { kind: 'slow_device', at_s, device, factor: Number(facts['factor']) };
    case 'device_lost':
      return { kind: 'drop_device', at_s, device };
    case 'device_frozen':
      return { kind: 'freeze_device', at_s, device };
    case 'device_joined':
      return { kind: 'join_device', at_s, device };
  }
  return null;
}

/** When a change comes, as a person reads it: in seconds, in parts of the run, or after a token. */
export function momentOf({ at_s, at_frac, after_token }: Change): string {
  if (typeof at_frac === 'number') return `after ${percent(at_frac)} of the run`;
  return typeof after_token === 'number' ? `after token ${after_token}` : duration(at_s);
}

export function subjectOf(change: Change): string {
  return 'link' in change ? change.link : change.device;
}

/** The number of a change in the unit of `KINDS`; null if its kind has none. */
export function valueOf(change: Change): number | null {
  switch (change.kind) {
    case 'set_rate':
      return Number((change.bit_per_s / 1e6).toPrecision(6));
    case 'set_delay':
      return Number((change.delay_s * 1e3).toPrecision(6));
    case 'set_loss':
      return Number((change.loss_frac * 100).toPrecision(6));
    case 'set_jitter':
      return Number((change.jitter_s * 1e3).toPrecision(6));
    case 'slow_device':
      return change.factor;
    default:
      return null;
  }
}

/** The change with another number, in the unit of `KINDS`. */
export function withValue(change: Change, value: number): Change {
  switch (change.kind) {
    case 'set_rate':
      return { ...change, bit_per_s: Math.max(value, 1e-3) * 1e6 };
    case 'set_delay':
      return { ...change, delay_s: Math.max(value, 0) / 1e3 };
    case 'set_loss':
      return { ...change, loss_frac: Math.min(Math.max(value, 0), 99) / 100 };
    case 'set_jitter':
      return { ...change, jitter_s: Math.max(value, 0) / 1e3 };
    case 'slow_device':
      return { ...change, factor: Math.max(value, 0.01) };
    default:
      return change;
  }
}

export function withSubject(change: Change, name: string): Change {
  return 'link' in change ? { ...change, link: name } : { ...change, device: name };
}

/** Another kind of change at the same time; of the same link or device where the kind allows it. */
export function withKind(change: Change, kind: Kind, cluster: ClusterSpec): Change {
  const { at_s } = change;
  const first = cluster.links[0];
  const link = 'link' in change ? change.link : first ? linkName(first) : '';
  const device = 'device' in change ? change.device : (cluster.devices[0]?.name ?? '');
  switch (kind) {
    case 'set_rate':
      return { kind, at_s, link, bit_per_s: 1e7, direction: 'both' };
    case 'set_delay':
      return { kind, at_s, link, delay_s: 0.02, direction: 'both' };
    case 'set_loss':
      return { kind, at_s, link, loss_frac: 0.01, direction: 'both' };
    case 'set_jitter':
      return { kind, at_s, link, jitter_s: 0.005 };
    case 'link_down':
    case 'link_up':
      return { kind, at_s, link };
    case 'slow_device':
      return { kind, at_s, device, factor: 2 };
    case 'drop_device':
    case 'freeze_device':
    case 'join_device':
      return { kind, at_s, device };
  }
}

export interface Curve {
  link: string;
  from_s: number;
  to_s: number;
  from_bit_per_s: number;
  to_bit_per_s: number;
  steps: number;
}

/** A rate that goes from one value to another in equal factors, as `steps` changes; the last has the second value. */
export function rateCurve({ link, from_s, to_s, from_bit_per_s, to_bit_per_s, steps }: Curve): Change[] {
  return Array.from({ length: steps }, (_, at): Change => {
    const share = steps === 1 ? 1 : at / (steps - 1);
    return {
      kind: 'set_rate',
      at_s: from_s + share * (to_s - from_s),
      link,
      bit_per_s: Number((from_bit_per_s * (to_bit_per_s / from_bit_per_s) ** share).toPrecision(6)),
      direction: 'both',
    };
  });
}

/** Changes in the order of their times, as a scenario has them; changes at one time keep their order. */
export function inOrder(changes: readonly Change[]): Change[] {
  return changes.toSorted((a, b) => a.at_s - b.at_s);
}
