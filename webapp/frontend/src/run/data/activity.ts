/** What a device does at an instant, and how busy its lanes were just before. */
import { LANES, type DeviceData, type Lane, type RunData } from './runData';
import { OVERLAPPING, type SpanRing } from './rings';

export type DeviceState =
  | 'computing'
  | 'sending'
  | 'receiving'
  | 'waiting'
  | 'idle'
  | 'no data yet'
  | 'not kept'
  | 'silent'
  | 'frozen'
  | 'failed';

export interface Activity {
  state: DeviceState;
  /** The layer that it computes at the instant, or null. */
  layer: number | null;
  /** Share of the window before the instant that each lane was busy. */
  shares: Record<Lane, number>;
}

/** What is known of a device at an instant. */
type Known = Pick<DeviceData, 'failedAt_s' | 'frozenAt_s' | 'silent_s'> & { activity: Activity };

/** Spans arrive when they end, nearly in order: older ones than these are before the window. */
const MAX_LOOK_BACK = 600;

const STATE_OF: Record<Lane, DeviceState> = {
  compute: 'computing',
  send: 'sending',
  recv: 'receiving',
  wait: 'waiting',
};

/**
 * The newest instant at which it is known what every device did. A span arrives when it ends, so the present is
 * known only up to the device that has been silent for longest; one that says nothing for `patience_s` does not
 * hold the others back.
 */
export function knownInstant_s(data: RunData, patience_s: number): number {
  let known_s = data.time_s;
  for (const device of data.devices) {
    const newest_s = newestEnd_s(device);
    if (newest_s > -Infinity && !isAway(device)) known_s = Math.min(known_s, newest_s);
  }
  return Math.max(known_s, data.time_s - patience_s, 0);
}

/** A device's state in a few words. */
export function stateText(device: Known): string {
  const { state } = device.activity;
  if (state === 'failed') return `failed at ${device.failedAt_s?.toFixed(2)} s`;
  if (state === 'frozen') return `frozen since ${device.frozenAt_s?.toFixed(2)} s`;
  if (state === 'silent') return `silent for ${Math.floor(device.silent_s ?? 0)} s`;
  return state;
}

/** What a state means where its name does not say it all; '' for the others. */
export function aboutState(device: Known): string {
  switch (device.activity.state) {
    case 'silent':
      return `Its process has sent nothing for ${Math.floor(device.silent_s ?? 0)} s of wall time; a running process sends a heartbeat every second. It is stopped, swapping or hanging, or this machine is too busy.`;
    case 'frozen':
      return 'A change has stopped its process: its connections stay open, and it sends nothing until it is restored.';
    case 'not kept':
      return 'This page keeps the newest activities of a run only, and has dropped those of this instant.';
    case 'no data yet':
      return 'An operation or a wait is reported when it has ended, and nothing has been reported for this instant yet.';
  }
  return '';
}

function isAway({ failedAt_s, frozenAt_s, silent_s }: DeviceData): boolean {
  return failedAt_s !== null || frozenAt_s !== null || silent_s !== null;
}

/** Activity at `at_s`, and in the `window_s` before it. */
export function activity(device: DeviceData, at_s: number, window_s: number): Activity {
  const shares = { compute: 0, send: 0, recv: 0, wait: 0 };
  for (const lane of LANES) shares[lane] = busyIn(device.lanes[lane], at_s - window_s, at_s) / window_s;
  return { ...stateAt(device, at_s), shares };
}

function stateAt(device: DeviceData, at_s: number): Pick<Activity, 'state' | 'layer'> {
  if (device.failedAt_s !== null) return { state: 'failed', layer: null };
  if (device.frozenAt_s !== null) return { state: 'frozen', layer: null };
  if (device.silent_s !== null) return { state: 'silent', layer: null };
  if (at_s === Infinity) return { state: 'idle', layer: null };
  // A span that ends at the newest known instant still counts there: look just before it.
  const before_s = at_s - Math.max(at_s, 1) * 1e-12;
  for (const lane of LANES) {
    const ring = device.lanes[lane];
    const index = ring.covering(before_s);
    if (index >= 0) {
      const computes = lane === 'compute' && ring.kindAt(index) === 'compute';
      return { state: STATE_OF[lane], layer: computes ? ring.view(index).layer : null };
    }
  }
  if (LANES.some((lane) => isBeforeKept(device.lanes[lane], before_s)))
    return { state: 'not kept', layer: null };
  const newest_s = newestEnd_s(device);
  return { state: newest_s > -Infinity && newest_s < before_s ? 'no data yet' : 'idle', layer: null };
}

/** Whether a ring has dropped what it had at `at_s`. */
function isBeforeKept(ring: SpanRing, at_s: number): boolean {
  return ring.dropped > 0 && at_s < ring.startAt(0);
}

function newestEnd_s(device: DeviceData): number {
  let newest_s = -Infinity;
  for (const lane of LANES) {
    const ring = device.lanes[lane];
    if (ring.length > 0) newest_s = Math.max(newest_s, ring.endAt(ring.length - 1));
  }
  return newest_s;
}

/** Seconds of [from, to) in which the lane had a span; overlapping spans count once. */
export function busyIn(ring: SpanRing, from: number, to: number): number {
  let busy = 0;
  let upTo = to;
  const last = Math.min(ring.length, ring.firstEndingAfter(to) + OVERLAPPING) - 1;
  const oldest = Math.max(0, last - MAX_LOOK_BACK);
  for (let index = last; index >= oldest; index -= 1) {
    const end = Math.min(ring.endAt(index), upTo);
    if (ring.endAt(index) <= from) break;
    const start = Math.max(ring.startAt(index), from);
    if (end > start) {
      busy += end - start;
      upTo = start;
    }
  }
  return busy;
}
