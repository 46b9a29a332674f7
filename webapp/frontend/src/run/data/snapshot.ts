/** The immutable snapshot of a run that React renders, taken at most four times per second. */
import { isOver, type Plan, type RunReport, type RunState } from '@/api/types';
import { activity, type Activity } from './activity';
import type { RunData, DirectionData, Injection, LogEntry, Token } from './runData';
import type { LayerLatency } from './layerTimes';
import type { LiveRecovery } from './recoveries';

export interface DeviceView {
  name: string;
  memoryBytes: number;
  residentBytes: number;
  peakBytes: number;
  failedAt_s: number | null;
  frozenAt_s: number | null;
  slowdown: number;
  changes: number;
  activity: Activity;
  /** The layer that it computed last inside the window, or null. */
  layer: number | null;
}

export interface LinkView {
  name: string;
  a: string;
  b: string;
  up: boolean;
  forward: DirectionData;
  backward: DirectionData;
  changes: number;
}

export interface Snapshot {
  version: number;
  state: RunState;
  stateDetail: string;
  states: readonly { state: RunState; detail: string }[];
  time_s: number;
  events: number;
  droppedSpans: number;
  plan: Plan | null;
  replanned: { time_s: number; reason: string } | null;
  recoveries: LiveRecovery[];
  report: RunReport | null;
  devices: DeviceView[];
  links: LinkView[];
  tokens: Token[];
  log: LogEntry[];
  injections: readonly Injection[];
  refusals: number;
  prefillLayers: LayerLatency | null;
  newestLayers: LayerLatency | null;
}

/** Long enough for every phase of a token, short enough to be "now". */
export const ACTIVITY_WINDOW_WALL_S = 0.75;

export function takeSnapshot(data: RunData, version: number, dilation: number): Snapshot {
  const window_s = ACTIVITY_WINDOW_WALL_S / Math.max(dilation, 1e-6);
  const over = isOver(data.state);
  // After the end no device is active.
  const now_s = over ? Infinity : data.time_s;
  return {
    version,
    state: data.state,
    stateDetail: data.stateDetail,
    states: [...data.states],
    time_s: data.time_s,
    events: data.events,
    droppedSpans: data.droppedSpans,
    plan: data.plan,
    replanned: data.replanned,
    recoveries: data.recoveries.list.map((one) => ({ ...one })),
    report: data.report,
    devices: data.devices.map((device) => {
      const compute = device.lanes.compute;
      const last = compute.length - 1;
      const fresh = last >= 0 && compute.endAt(last) > now_s - window_s && compute.kindAt(last) === 'compute';
      return {
        name: device.name,
        memoryBytes: device.memoryBytes,
        residentBytes: device.residentBytes,
        peakBytes: device.peakBytes,
        failedAt_s: device.failedAt_s,
        frozenAt_s: device.frozenAt_s,
        slowdown: device.slowdown,
        changes: device.changes,
        activity: activity(device, now_s, window_s),
        layer: fresh ? compute.view(last).layer : null,
      };
    }),
    links: data.links.map((link) => ({
      ...link,
      forward: still(link.forward, over),
      backward: still(link.backward, over),
    })),
    tokens: data.tokens.toArray(),
    log: data.log.toArray(),
    injections: [...data.injections],
    refusals: data.refusals,
    prefillLayers: data.layers.prefill(),
    newestLayers: data.layers.newest(),
  };
}

function still(side: DirectionData, over: boolean): DirectionData {
  return over ? { ...side, use_bit_per_s: 0 } : { ...side };
}
