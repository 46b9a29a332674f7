/** What a device is doing now, from the newest spans of its lanes. */
import { LANES, type DeviceData, type Lane } from './runData';
import type { SpanRing } from './rings';

export type DeviceState = 'computing' | 'sending' | 'receiving' | 'waiting' | 'idle' | 'failed';

export interface Activity {
  state: DeviceState;
  /** Share of the window that each lane was busy. */
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

/** Activity in the `window_s` before `now_s`. The state is the busiest of computing, sending and receiving. */
export function activity(device: DeviceData, now_s: number, window_s: number): Activity {
  const from = now_s - window_s;
  const shares = { compute: 0, send: 0, recv: 0, wait: 0 };
  for (const lane of LANES) shares[lane] = busyIn(device.lanes[lane], from, now_s) / window_s;
  if (device.failedAt_s !== null) return { state: 'failed', shares };
  let state: DeviceState = 'idle';
  let most = 0.02;
  for (const lane of LANES) {
    if (shares[lane] > most && (lane !== 'wait' || state === 'idle')) {
      most = shares[lane];
      state = STATE_OF[lane];
    }
  }
  return { state, shares };
}

/** Seconds of [from, to) in which the lane had a span; overlapping spans count once. */
export function busyIn(ring: SpanRing, from: number, to: number): number {
  let busy = 0;
  let upTo = to;
  const oldest = Math.max(0, ring.length - MAX_LOOK_BACK);
  for (let index = ring.length - 1; index >= oldest; index -= 1) {
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
