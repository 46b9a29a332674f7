/** The devices and links of a run, as its events change them. */
import type { ClusterSpec, DeviceSpec, Mark, Span, SpanKind } from '@/api/types';
import { type Facts, number } from './facts';
import type { SpanRing } from './rings';
import { Series } from './series';
import { linkName, linkNames } from '@/format/links';

export const LANES = ['compute', 'send', 'recv', 'wait'] as const;
export type Lane = (typeof LANES)[number];

export const LANE_OF: Record<SpanKind, Lane> = {
  compute: 'compute',
  load: 'compute',
  store: 'compute',
  evict: 'compute',
  stage: 'compute',
  send: 'send',
  recv: 'recv',
  wait: 'wait',
};

export interface DirectionData {
  use_bit_per_s: number;
  set_bit_per_s: number;
  measured_bit_per_s: number | null;
  delay_s: number;
  loss_frac: number;
}

export interface LinkData {
  name: string;
  /** Its name with the ends exchanged. */
  other: string;
  a: string;
  b: string;
  up: boolean;
  /** By how much a packet's delay varies at random, in both directions. */
  jitter_s: number;
  forward: DirectionData;
  backward: DirectionData;
  /** Number of applied changes; a control waits until it grows. */
  changes: number;
  /** Over time, the share of the set rate that is in use, in the busier direction. */
  use: Series;
}

export interface DeviceData {
  name: string;
  memoryBytes: number;
  residentBytes: number;
  peakBytes: number;
  failedAt_s: number | null;
  frozenAt_s: number | null;
  /** Wall seconds since its process made a sign; null while it makes them, as it does every second. */
  silent_s: number | null;
  /** Factor on the time of every operation. */
  slowdown: number;
  /** Number of applied changes, as for a link. */
  changes: number;
  /** Bytes of weights loaded during the run, and the seconds this took. */
  loadedBytes: number;
  loading_s: number;
  lanes: Record<Lane, SpanRing>;
  /** Over time, the share of the memory that is in use. */
  memory: Series;
  /** What its process wrote last: another array when there is more. */
  output: readonly OutputLine[];
}

/** A line of a process's log, and its virtual time. */
export interface OutputLine {
  key: number;
  time_s: number;
  text: string;
}

const MAX_OUTPUT = 500;

export function addOutput(device: DeviceData, time_s: number, lines: readonly string[]): void {
  const next = (device.output.at(-1)?.key ?? 0) + 1;
  const added = lines.map((text, index) => ({ key: next + index, time_s, text }));
  device.output = [...device.output, ...added].slice(-MAX_OUTPUT);
}

export function deviceData(spec: DeviceSpec, lanes: DeviceData['lanes']): DeviceData {
  return {
    name: spec.name,
    memoryBytes: spec.memory_bytes - (spec.reserved_bytes ?? 0),
    residentBytes: 0,
    peakBytes: 0,
    failedAt_s: null,
    frozenAt_s: null,
    silent_s: null,
    slowdown: 1,
    changes: 0,
    loadedBytes: 0,
    loading_s: 0,
    lanes,
    memory: new Series(),
    output: [],
  };
}

export function linkData(link: ClusterSpec['links'][number]): LinkData {
  return {
    name: linkName(link),
    other: linkNames(link)[1],
    a: link.a,
    b: link.b,
    up: true,
    jitter_s: link.jitter_s,
    forward: direction(link.bit_per_s, link.delay_s, link.loss_frac),
    backward: direction(
      link.reverse_bit_per_s ?? link.bit_per_s,
      link.reverse_delay_s ?? link.delay_s,
      link.reverse_loss_frac ?? link.loss_frac,
    ),
    changes: 0,
    use: new Series(),
  };
}

function direction(bit_per_s: number, delay_s: number, loss_frac: number): DirectionData {
  return { use_bit_per_s: 0, set_bit_per_s: bit_per_s, measured_bit_per_s: null, delay_s, loss_frac };
}

export function isCalled(link: LinkData, name: unknown): boolean {
  return name === link.name || name === link.other;
}

/** What was measured of another rate says nothing about this one. */
export function setRate(side: DirectionData, bit_per_s: number): void {
  if (bit_per_s !== side.set_bit_per_s) side.measured_bit_per_s = null;
  side.set_bit_per_s = bit_per_s;
}

/** Measured rate over the rate that is set, from 0 to 1. */
export function utilisation(direction: DirectionData): number {
  if (direction.set_bit_per_s <= 0) return 0;
  return Math.min(direction.use_bit_per_s / direction.set_bit_per_s, 1);
}

export function countLoad(
  device: DeviceData,
  span: Pick<Span, 'kind' | 'bytes' | 'start_s' | 'end_s'>,
): void {
  if (span.kind !== 'load') return;
  device.loadedBytes += span.bytes;
  device.loading_s += span.end_s - span.start_s;
}

export function applyMemoryMark(device: DeviceData, { time_s, facts }: Mark): void {
  device.residentBytes = number(facts['resident_bytes'], device.residentBytes);
  device.peakBytes = Math.max(device.peakBytes, number(facts['peak_bytes'], device.residentBytes));
  device.memory.push(time_s, device.residentBytes / Math.max(device.memoryBytes, 1));
}

export const DEVICE_MARKS = new Set([
  'device_lost',
  'device_frozen',
  'device_joined',
  'device_changed',
  'loss_detected',
]);

/** `loss_detected` comes from the other devices; all other marks confirm a change of this device. */
export function applyDeviceMark(device: DeviceData, mark: Mark): void {
  if (mark.name === 'loss_detected') {
    device.failedAt_s ??= mark.time_s;
    return;
  }
  device.changes += 1;
  if (mark.name === 'device_lost') device.failedAt_s = mark.time_s;
  if (mark.name === 'device_frozen') device.frozenAt_s = mark.time_s;
  if (mark.name === 'device_changed') device.slowdown = number(mark.facts['factor'], device.slowdown);
  if (mark.name === 'device_joined') {
    device.failedAt_s = null;
    device.frozenAt_s = null;
  }
}

export const LINK_MARKS = new Set(['link_changed', 'link_down', 'link_up']);

export function applyLinkMark(link: LinkData, name: string, facts: Facts): void {
  link.changes += 1;
  if (name === 'link_down') link.up = false;
  if (name === 'link_up') link.up = true;
  if (name !== 'link_changed') return;
  link.jitter_s = number(facts['jitter_s'], link.jitter_s);
  const which = facts['direction'];
  for (const side of [link.forward, link.backward]) {
    const skipped =
      (which === 'forward' && side === link.backward) || (which === 'backward' && side === link.forward);
    if (skipped) continue;
    setRate(side, number(facts['bit_per_s'], side.set_bit_per_s));
    side.delay_s = number(facts['delay_s'], side.delay_s);
    side.loss_frac = number(facts['loss_frac'], side.loss_frac);
  }
}
