/** The state of one run, folded from its events. Mutable and outside React on purpose: thousands of
 * events per second are applied here; `snapshot.ts` (4 Hz) and the canvases (30 Hz) read it. */
import type {
  ClusterSpec,
  Mark,
  ModelSpec,
  Plan,
  RunEvent,
  RunReport,
  RunState,
  Span,
  SpanKind,
} from '@/api/types';
import { percent } from '@/format/units';
import { type Facts, isPlan, number, text } from './facts';
import { LayerTimes } from './layerTimes';
import { Recoveries } from './recoveries';
import { Names, Ring, SpanRing } from './rings';
import { HeadMap } from './headMap';

export const LANES = ['compute', 'send', 'recv', 'wait'] as const;
export type Lane = (typeof LANES)[number];

const LANE_OF: Record<SpanKind, Lane> = {
  compute: 'compute',
  load: 'compute',
  store: 'compute',
  evict: 'compute',
  stage: 'compute',
  send: 'send',
  recv: 'recv',
  wait: 'wait',
};

const SPAN_BUDGET = 400_000;
const MAX_TOKENS = 20_000;
const MAX_LOG = 2_000;
/** Clock events come every 0.25 s; without one, time is extrapolated for at most this long. */
const MAX_AHEAD_WALL_S = 0.6;
/** Marks that the event log leaves out: too many, or shown elsewhere. */
const QUIET_MARKS = new Set(['token_emitted', 'memory', 'decided', 'heads', 'reloaded', 'request_finished']);
/** Marks of strategies, for their views. */
const METHOD_MARKS = new Set([
  'promoted',
  'copied',
  'copies_lost',
  'threshold',
  'kv_transfer',
  'unpinned',
  'recomputed',
  'reallocated',
  'heads_recomputed',
  'all_heads_pruned',
  'repartitioned',
]);
const MAX_METHOD_MARKS = 2_000;

export interface Token {
  request: number;
  index: number;
  token: number;
  text: string;
  latency_s: number;
  time_s: number;
}

export interface LogEntry {
  key: number;
  time_s: number | null;
  level: 'info' | 'warning' | 'error' | 'injection' | 'state';
  text: string;
}

/** A change of the cluster: a vertical line on every chart. */
export interface Injection {
  time_s: number;
  name: string;
  label: string;
}

export interface DirectionData {
  use_bit_per_s: number;
  set_bit_per_s: number;
  measured_bit_per_s: number | null;
  delay_s: number;
  loss_frac: number;
}

export interface LinkData {
  name: string;
  a: string;
  b: string;
  up: boolean;
  forward: DirectionData;
  backward: DirectionData;
  /** Number of applied changes; a control waits until it grows. */
  changes: number;
}

export interface DeviceData {
  name: string;
  memoryBytes: number;
  residentBytes: number;
  peakBytes: number;
  failedAt_s: number | null;
  frozenAt_s: number | null;
  /** Factor on the time of every operation. */
  slowdown: number;
  /** Number of applied changes, as for a link. */
  changes: number;
  /** Bytes of weights loaded during the run, and the seconds this took. */
  loadedBytes: number;
  loading_s: number;
  lanes: Record<Lane, SpanRing>;
}

export class RunData {
  state: RunState = 'queued';
  stateDetail = '';
  readonly states: { state: RunState; detail: string }[] = [];
  plan: Plan | null = null;
  /** When the plan in force was made, and why; null for the first one. */
  replanned: { time_s: number; reason: string } | null = null;
  report: RunReport | null = null;
  time_s = 0;
  clock: { time_s: number; wall_s: number; at_ms: number } | null = null;
  events = 0;
  readonly devices: DeviceData[];
  readonly links: LinkData[];
  readonly tokens = new Ring<Token>(MAX_TOKENS);
  readonly log = new Ring<LogEntry>(MAX_LOG);
  readonly injections: Injection[] = [];
  readonly recoveries = new Recoveries();
  readonly heads = new HeadMap();
  readonly methodMarks = new Ring<Mark>(MAX_METHOD_MARKS);
  readonly layers: LayerTimes;
  /** Number of refused changes; the log has the reasons. */
  refusals = 0;
  private readonly byName = new Map<string, DeviceData>();
  /** By request the time of its arrival or newest token: the next token's latency counts from there. */
  private readonly since_s = new Map<number, number>();
  private logKey = 0;

  constructor(cluster: ClusterSpec, model: ModelSpec, spanBudget = SPAN_BUDGET) {
    const names = new Names();
    const cap = Math.max(64, Math.floor(spanBudget / (cluster.devices.length * LANES.length)));
    this.layers = new LayerTimes(model.num_layers);
    this.devices = cluster.devices.map((device) => ({
      name: device.name,
      memoryBytes: device.memory_bytes,
      residentBytes: 0,
      peakBytes: 0,
      failedAt_s: null,
      frozenAt_s: null,
      slowdown: 1,
      changes: 0,
      loadedBytes: 0,
      loading_s: 0,
      lanes: {
        compute: new SpanRing(names, cap),
        send: new SpanRing(names, cap),
        recv: new SpanRing(names, cap),
        wait: new SpanRing(names, cap),
      },
    }));
    for (const device of this.devices) this.byName.set(device.name, device);
    this.links = cluster.links.map((link) => ({
      name: `${link.a}--${link.b}`,
      a: link.a,
      b: link.b,
      up: true,
      forward: direction(link.bit_per_s, link.delay_s, link.loss_frac),
      backward: direction(
        link.reverse_bit_per_s ?? link.bit_per_s,
        link.reverse_delay_s ?? link.delay_s,
        link.reverse_loss_frac ?? link.loss_frac,
      ),
      changes: 0,
    }));
  }

  /** Applies events in order; `now_ms` is the wall clock at their arrival, for the extrapolated clock. */
  apply(events: readonly RunEvent[], now_ms = 0): void {
    for (const event of events) this.applyOne(event, now_ms);
    this.events += events.length;
  }

  device(name: string): DeviceData | undefined {
    return this.byName.get(name);
  }

  /** Virtual time at wall clock `now_ms`; while the run is live, extrapolated from the newest clock event. */
  now_s(now_ms: number, live: boolean): number {
    if (!live || !this.clock || this.clock.wall_s <= 0) return this.time_s;
    const ahead_s = Math.min((now_ms - this.clock.at_ms) / 1000, MAX_AHEAD_WALL_S);
    const virtualPerWall = this.clock.time_s / this.clock.wall_s;
    return Math.max(this.time_s, this.clock.time_s + Math.max(ahead_s, 0) * virtualPerWall);
  }

  get droppedSpans(): number {
    return this.devices.reduce(
      (sum, device) => sum + LANES.reduce((n, lane) => n + device.lanes[lane].dropped, 0),
      0,
    );
  }

  private applyOne(event: RunEvent, now_ms: number): void {
    switch (event.type) {
      case 'span':
        return this.applySpan(event);
      case 'mark':
        return this.applyMark(event);
      case 'state':
        this.state = event.state;
        this.stateDetail = event.detail;
        this.states.push({ state: event.state, detail: event.detail });
        return this.addLog(null, 'state', event.detail ? `${event.state}: ${event.detail}` : event.state);
      case 'plan':
        this.plan = event;
        return;
      case 'links':
        this.time_s = Math.max(this.time_s, event.time_s);
        for (const sample of event.links) {
          const link = this.links[sample.link];
          if (!link) continue;
          const side = sample.forward ? link.forward : link.backward;
          side.use_bit_per_s = sample.bit_per_s;
          side.set_bit_per_s = sample.set_bit_per_s;
          side.measured_bit_per_s = sample.measured_bit_per_s ?? side.measured_bit_per_s;
          link.up = sample.up;
        }
        return;
      case 'clock':
        this.clock = { time_s: event.time_s, wall_s: event.wall_s, at_ms: now_ms };
        this.time_s = Math.max(this.time_s, event.time_s);
        return;
      case 'log':
        return this.addLog(null, event.level, event.text);
      case 'change_refused':
        this.refusals += 1;
        return this.addLog(null, 'error', `Change refused: ${event.reason}`);
      case 'report':
        this.report = event;
        return;
    }
    event satisfies never; // A type error here: an event that no case applies.
  }

  private applySpan(span: Span): void {
    const device = this.byName.get(span.device);
    device?.lanes[LANE_OF[span.kind]].push(span);
    if (device && span.kind === 'load') {
      device.loadedBytes += span.bytes;
      device.loading_s += span.end_s - span.start_s;
    }
    this.time_s = Math.max(this.time_s, span.end_s);
    this.layers.add(span);
  }

  private applyMark(mark: Mark): void {
    const { facts } = mark;
    this.time_s = Math.max(this.time_s, mark.time_s);
    const device = this.byName.get(mark.device || text(facts['device']));
    const link = this.links.find((one) => isCalled(one, facts['link']));
    switch (mark.name) {
      case 'token_emitted':
        this.addToken(mark.time_s, facts);
        break;
      case 'request_arrived':
        this.since_s.set(number(facts['request'], 0), mark.time_s);
        break;
      case 'memory':
        if (device) {
          device.residentBytes = number(facts['resident_bytes'], device.residentBytes);
          device.peakBytes = Math.max(device.peakBytes, number(facts['peak_bytes'], device.residentBytes));
        }
        break;
      case 'device_lost':
      case 'device_frozen':
      case 'device_joined':
      case 'device_changed':
      case 'loss_detected':
        if (device) applyDeviceMark(device, mark);
        break;
      case 'replanned':
        if (isPlan(facts['plan'])) this.plan = facts['plan'];
        this.replanned = { time_s: mark.time_s, reason: text(facts['reason']) };
        break;
      case 'link_changed':
      case 'link_down':
      case 'link_up':
        if (link) applyLinkMark(link, mark.name, facts);
        break;
    }
    this.recoveries.apply(mark);
    this.heads.apply(mark);
    if (METHOD_MARKS.has(mark.name)) this.methodMarks.push(mark);
    if (QUIET_MARKS.has(mark.name)) return;
    const label = describeMark(mark);
    const injected = INJECTIONS.has(mark.name);
    if (injected) this.injections.push({ time_s: mark.time_s, name: mark.name, label });
    this.addLog(mark.time_s, injected ? 'injection' : 'info', label);
  }

  private addToken(time_s: number, facts: Facts): void {
    const request = number(facts['request'], 0);
    const token = number(facts['token'], -1);
    const elapsed_s = time_s - (this.since_s.get(request) ?? 0);
    this.since_s.set(request, time_s);
    this.tokens.push({
      request,
      index: number(facts['index'], 0),
      token,
      text: text(facts['text']),
      latency_s: number(facts['latency_s'], elapsed_s),
      time_s,
    });
  }

  private addLog(time_s: number | null, level: LogEntry['level'], text: string): void {
    this.logKey += 1;
    this.log.push({ key: this.logKey, time_s, level, text });
  }
}

const INJECTIONS = new Set([
  'link_changed',
  'link_down',
  'link_up',
  'device_lost',
  'device_frozen',
  'device_joined',
  'device_changed',
  'replanned',
]);

function direction(bit_per_s: number, delay_s: number, loss_frac: number): DirectionData {
  return { use_bit_per_s: 0, set_bit_per_s: bit_per_s, measured_bit_per_s: null, delay_s, loss_frac };
}

/** `loss_detected` comes from the other devices; all other marks confirm a change of this device. */
function applyDeviceMark(device: DeviceData, mark: Mark): void {
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

function applyLinkMark(link: LinkData, name: string, facts: Facts): void {
  link.changes += 1;
  if (name === 'link_down') link.up = false;
  if (name === 'link_up') link.up = true;
  if (name !== 'link_changed') return;
  const which = facts['direction'];
  for (const side of [link.forward, link.backward]) {
    const skipped =
      (which === 'forward' && side === link.backward) || (which === 'backward' && side === link.forward);
    if (skipped) continue;
    side.set_bit_per_s = number(facts['bit_per_s'], side.set_bit_per_s);
    side.delay_s = number(facts['delay_s'], side.delay_s);
    side.loss_frac = number(facts['loss_frac'], side.loss_frac);
  }
}

function isCalled(link: LinkData, name: unknown): boolean {
  return name === link.name || name === `${link.b}--${link.a}`;
}

/** One line for the event log. */
export function describeMark(mark: Mark): string {
  const facts = { ...mark.facts };
  const subject = String(facts['link'] ?? (mark.device || facts['device']) ?? '');
  delete facts['link'];
  delete facts['device'];
  const details = Object.entries(facts)
    .filter(([, value]) => value !== null && value !== '' && typeof value !== 'object')
    .map(([key, value]) => fact(key, value));
  return [mark.name.replaceAll('_', ' '), subject, details.join(', ')].filter(Boolean).join(' · ');
}

function fact(key: string, value: unknown): string {
  if (typeof value === 'number' && key.endsWith('bit_per_s')) return `${(value / 1e6).toPrecision(3)} Mbit/s`;
  if (key.endsWith('loss_frac') && typeof value === 'number') return `packet loss ${percent(value)}`;
  if (typeof value === 'number' && key.endsWith('_s')) return `${key.slice(0, -2)} ${value.toPrecision(3)} s`;
  if (typeof value === 'number' && !Number.isInteger(value)) return `${key} ${value.toPrecision(3)}`;
  return `${key} ${String(value)}`;
}
