/** The critical path of a run: from its end back through the activities that it waited for. The same walk as
 * `engine/reports/attribution.py`, which adds up the parts of the time. */
import { LANES, type DeviceData, type Lane } from './parts';

export interface Segment {
  /** Rank of the device. */
  device: number;
  /** The lane of the activity; `wait` where nothing had ended. */
  lane: Lane;
  start_s: number;
  end_s: number;
}

/** Times of the two worlds' logs may differ by so much. */
const TOLERANCE_S = 1e-9;
/** Of two activities that end together, the one with the higher rank counts. */
const RANK: Record<string, number> = { send: 0, recv: 1, stage: 2, load: 3, store: 3, compute: 4 };

interface Ending {
  lane: Lane;
  index: number;
  end_s: number;
  rank: number;
}

/** The pieces of [start_s, end_s), the last first; the walk begins at device `source`. It ends early where the
 * oldest activities are not kept any more. */
export function criticalPath(
  devices: readonly Pick<DeviceData, 'name' | 'lanes'>[],
  source: number,
  start_s: number,
  end_s: number,
): Segment[] {
  const ranks = new Map(devices.map((device, rank) => [device.name, rank]));
  const stacks = devices.map(endings);
  const sent = sendsOf(devices);
  const path: Segment[] = [];
  let device = source;
  let now_s = end_s;
  while (now_s > start_s) {
    const stack = stacks[device]!;
    while (stack.length > 0 && stack.at(-1)!.end_s > now_s + TOLERANCE_S) stack.pop();
    const last = stack.pop();
    // The oldest activities may not be kept: the path is known from here on.
    if (!last && isCut(devices[device]!)) break;
    if (!last) {
      path.push({ device, lane: 'wait', start_s, end_s: now_s });
      break;
    }
    const ended_s = Math.min(Math.max(last.end_s, start_s), now_s);
    if (ended_s < now_s) path.push({ device, lane: 'wait', start_s: ended_s, end_s: now_s });
    const { peer, message, start_s: began } = devices[device]!.lanes[last.lane].view(last.index);
    const received = last.lane === 'recv';
    const call_s = received ? sent.get(`${peer} ${devices[device]!.name} ${message}`) : undefined;
    const began_s = Math.max(Math.min(call_s ?? began, ended_s), start_s);
    path.push({ device, lane: last.lane, start_s: began_s, end_s: ended_s });
    if (received) device = ranks.get(peer) ?? device;
    now_s = began_s;
  }
  return path;
}

function isCut({ lanes }: Pick<DeviceData, 'lanes'>): boolean {
  return LANES.some((lane) => lanes[lane].dropped > 0);
}

/** A device's activities in the order of their ends. */
function endings({ lanes }: Pick<DeviceData, 'lanes'>): Ending[] {
  const found: Ending[] = [];
  for (const lane of LANES) {
    const ring = lanes[lane];
    for (let index = 0; index < ring.length; index += 1) {
      const rank = RANK[ring.kindAt(index)];
      if (rank !== undefined) found.push({ lane, index, end_s: ring.endAt(index), rank });
    }
  }
  return found.toSorted((one, other) => one.end_s - other.end_s || one.rank - other.rank);
}

/** When each message's send was called. */
function sendsOf(devices: readonly Pick<DeviceData, 'name' | 'lanes'>[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const { name, lanes } of devices) {
    for (let index = 0; index < lanes.send.length; index += 1) {
      const { peer, message, start_s } = lanes.send.view(index);
      found.set(`${name} ${peer} ${message}`, start_s);
    }
  }
  return found;
}
