/** The immutable snapshot of a run that React renders, taken at most four times per second. */
import { isOver, type Plan, type RunReport, type RunState } from '@/api/types';
import { activity, knownInstant_s, type Activity } from './activity';
import type { LayerLatency } from './layerTimes';
import type { DeviceData, DirectionData, LinkData } from './parts';
import type { Rest } from './progress';
import type { RunData, Injection, LogEntry, PlanVersion, Token } from './runData';
import type { LiveRecovery } from './recoveries';

/** A device without what only grows, and what it does. */
export type DeviceView = Omit<DeviceData, 'lanes' | 'memory' | 'loadedBytes' | 'loading_s'> & {
  activity: Activity;
};

export type LinkView = Omit<LinkData, 'use' | 'other'>;

export interface Snapshot {
  version: number;
  state: RunState;
  stateDetail: string;
  attempt: string;
  states: readonly { state: RunState; detail: string }[];
  time_s: number;
  /** Wall seconds per virtual second, by the newest tick of the run's clock; null before it has one. */
  dilation: number | null;
  /** The instant whose activity `devices` have; null once the run is over. */
  instant_s: number | null;
  events: number;
  droppedSpans: number;
  /** The plan in force, and all that were made. */
  plan: Plan | null;
  plans: readonly PlanVersion[];
  recoveries: LiveRecovery[];
  report: RunReport | null;
  devices: DeviceView[];
  links: LinkView[];
  tokens: Token[];
  /** Virtual seconds in which the run had something to do: of one that serves, in which somebody waited. */
  busy_s: number;
  log: LogEntry[];
  injections: readonly Injection[];
  rests: readonly Rest[];
  refusals: number;
  prefillLayers: LayerLatency | null;
  newestLayers: LayerLatency | null;
}

/** Long enough for every phase of a token, short enough to be "now". */
export const ACTIVITY_WINDOW_WALL_S = 0.75;
/** A device that reports nothing for this long does not hold the shown instant back. */
const PATIENCE_WALL_S = 2;

/** The snapshot of `data` as it is now; `dilation` is wall seconds per virtual second. */
export function takeSnapshot(data: RunData, version: number, dilation: number): Snapshot {
  const over = isOver(data.state);
  // After the end no device is active.
  const instant_s = over ? null : knownInstant_s(data, PATIENCE_WALL_S / Math.max(dilation, 1e-6));
  return snapshotOf(data, data, instant_s, version, dilation);
}

/** The snapshot of an earlier instant: `then` is `whole.at(time_s)`. */
export function snapshotAt(then: RunData, whole: RunData, version: number, dilation: number): Snapshot {
  return snapshotOf(then, whole, then.time_s, version, dilation);
}

/** The state at an instant; `whole` has the spans that cover the instant, also those that end after it. */
function snapshotOf(
  data: RunData,
  whole: RunData,
  instant_s: number | null,
  version: number,
  dilation: number,
): Snapshot {
  const window_s = ACTIVITY_WINDOW_WALL_S / Math.max(dilation, 1e-6);
  const isFree = data.state === 'running' && data.service.isFree;
  const doing = (device: DeviceData): Activity => {
    const found = activity(device, instant_s ?? Infinity, window_s);
    return isFree && found.state === 'no data yet' ? { ...found, state: 'idle' } : found;
  };
  return {
    version,
    state: data.state,
    stateDetail: data.stateDetail,
    attempt: data.attempt,
    states: [...data.states],
    time_s: data.time_s,
    dilation: data.clock && data.clock.time_s > 0 ? data.clock.wall_s / data.clock.time_s : null,
    instant_s,
    events: data.events,
    droppedSpans: data.droppedSpans,
    plan: data.planInForce,
    plans: [...data.plans.versions],
    recoveries: data.recoveries.list.map((one) => ({ ...one })),
    report: data.report,
    devices: data.devices.map((device, rank) => {
      const { lanes } = whole.devices[rank]!;
      return { ...device, activity: doing({ ...device, lanes }) };
    }),
    links: data.links.map((link) => ({
      ...link,
      forward: still(link.forward, instant_s === null),
      backward: still(link.backward, instant_s === null),
    })),
    tokens: data.tokens.toArray(),
    busy_s: data.service.serves ? data.service.busy_s(data.time_s) : data.time_s,
    log: data.log.toArray(),
    injections: [...data.injections],
    rests: [...data.rests],
    refusals: data.refusals,
    prefillLayers: data.layers.prefill(),
    newestLayers: data.layers.newest(),
  };
}

function still(side: DirectionData, over: boolean): DirectionData {
  return over ? { ...side, use_bit_per_s: 0 } : { ...side };
}
