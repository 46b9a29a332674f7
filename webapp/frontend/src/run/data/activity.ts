/** What a device does at an instant, and how busy its lanes were just before. */
import { LANES, type DeviceData, type Lane, type RunData } from './runData';
import { OVERLAPPING, type SpanRing } from './rings';

export type DeviceState =
  'computing' | 'sending' | 'receiving' | 'waiting' | 'idle' | 'no news' | 'frozen' | 'failed';

export interface Activity {
  state: DeviceState;
  /** The layer that it computes at the instant, or null. */
  layer: number | null;
  /** Share of the window before the instant that each lane was busy. */
  shares: Record<Lane, number>;
}

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
    if (newest_s > -Infinity && device.failedAt_s === null && device.frozenAt_s === null)
      known_s = Math.min(known_s, newest_s);
  }
  return Math.max(known_s, data.time_s - patience_s, 0);
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
  const newest_s = newestEnd_s(device);
  return { state: newest_s > -Infinity && newest_s < before_s ? 'no news' : 'idle', layer: null };
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
