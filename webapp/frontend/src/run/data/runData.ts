/** The state of one run, folded from its events. Mutable and outside React on purpose: thousands of
 * events per second are applied here; `snapshot.ts` (4 Hz) and the canvases (30 Hz) read it. */
import {
  isOver,
  type ClusterSpec,
  type Mark,
  type ModelSpec,
  type Plan,
  type RunEvent,
  type RunReport,
  type RunState,
  type Span,
} from '@/api/types';
import { seconds } from '@/format/units';
import { text } from './facts';
import { HeadMap } from './headMap';
import { LayerTimes } from './layerTimes';
import { describeMark, injectionOf, METHOD_MARKS, QUIET_MARKS, type Injection } from './marks';
import {
  addOutput,
  applyDeviceMark,
  applyLinkMark,
  applyMemoryMark,
  countLoad,
  DEVICE_MARKS,
  deviceData,
  isCalled,
  LANE_OF,
  LANES,
  LINK_MARKS,
  linkData,
  setRate,
  utilisation,
  type DeviceData,
  type LinkData,
} from './parts';
import { Plans } from './plans';
import { restOf, type Rest } from './progress';
import { Recoveries } from './recoveries';
import { Names, Ring, SpanRing } from './rings';
import { Service } from './service';
import { TokenLog } from './tokenLog';

export { LANES, type DeviceData, type DirectionData, type Lane, type LinkData } from './parts';
export { describeMark, type Injection } from './marks';
export { type PlanVersion } from './plans';
export { type Token } from './tokenLog';

const SPAN_BUDGET = 400_000;
const MAX_LOG = 2_000;
const MAX_METHOD_MARKS = 2_000;
/** Events other than spans that are kept, for the state at an earlier instant. */
const MAX_HISTORY = 300_000;
/** Clock events come every 0.25 s; without one, time is extrapolated for at most this long. */
const MAX_AHEAD_WALL_S = 0.6;

export interface LogEntry {
  key: number;
  time_s: number | null;
  level: 'info' | 'warning' | 'error' | 'injection' | 'state';
  text: string;
}

type Lanes = DeviceData['lanes'];

/** "4.2 s in all, 3.8 s left". */
function restText({ latency_s, left_s }: { latency_s: number; left_s: number }): string {
  return `${seconds(latency_s)} in all, ${seconds(left_s)} left`;
}

export class RunData {
  state: RunState = 'queued';
  stateDetail = '';
  /** What is to be said of the attempt that goes on, if the run has begun again. */
  attempt = '';
  readonly states: { state: RunState; detail: string }[] = [];
  readonly plans = new Plans();
  report: RunReport | null = null;
  time_s = 0;
  clock: { time_s: number; wall_s: number; at_ms: number } | null = null;
  events = 0;
  readonly devices: DeviceData[];
  readonly links: LinkData[];
  readonly tokens = new TokenLog();
  readonly log = new Ring<LogEntry>(MAX_LOG);
  readonly injections: Injection[] = [];
  /** The marks of `injections`. */
  readonly changeMarks: Mark[] = [];
  readonly recoveries = new Recoveries();
  readonly service = new Service();
  readonly heads = new HeadMap();
  readonly methodMarks = new Ring<Mark>(MAX_METHOD_MARKS);
  layers: LayerTimes;
  /** What was predicted from here on, after changes that nobody had announced. */
  readonly rests: Rest[] = [];
  /** Number of refused changes; the log has the reasons. */
  refusals = 0;
  private readonly byName = new Map<string, DeviceData>();
  private readonly history = new Ring<{ time_s: number; event: RunEvent }>(MAX_HISTORY);
  private logKey = 0;

  constructor(
    private readonly cluster: ClusterSpec,
    private readonly model: ModelSpec,
    private readonly spanBudget = SPAN_BUDGET,
    lanesOf?: (rank: number) => Lanes,
  ) {
    const names = new Names();
    const cap = Math.max(64, Math.floor(spanBudget / (cluster.devices.length * LANES.length)));
    const empty = (): Lanes => ({
      compute: new SpanRing(names, cap),
      send: new SpanRing(names, cap),
      recv: new SpanRing(names, cap),
      wait: new SpanRing(names, cap),
    });
    this.layers = new LayerTimes(model.num_layers);
    this.devices = cluster.devices.map((device, rank) => deviceData(device, lanesOf?.(rank) ?? empty()));
    for (const device of this.devices) this.byName.set(device.name, device);
    this.links = cluster.links.map(linkData);
  }

  /** Applies events in order; `now_ms` is the wall clock at their arrival, for the extrapolated clock. */
  apply(events: Iterable<RunEvent>, now_ms = 0): void {
    for (const event of events) {
      this.applyOne(event, now_ms);
      this.events += 1;
    }
  }

  device(name: string): DeviceData | undefined {
    return this.byName.get(name);
  }

  /** The plan in force; the same object until it changes. */
  get planInForce(): Plan | null {
    const lost = new Set(this.devices.flatMap((one, rank) => (one.failedAt_s === null ? [] : [rank])));
    const { methodMarks: marks, heads } = this;
    return this.plans.now(`${marks.pushed} ${heads.version}`, {
      marks: marks.toArray(),
      heads: heads.rows,
      lost,
    });
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

  /** Virtual time from which on every activity is kept; 0 if none was dropped. */
  get keptFrom_s(): number {
    const rings = this.devices.flatMap(({ lanes }) => LANES.map((lane) => lanes[lane]));
    return Math.max(0, ...rings.filter(({ dropped }) => dropped > 0).map((ring) => ring.startAt(0)));
  }

  /** The run as it was at `time_s`. It shares the spans with this object: read it before the next `apply`. */
  at(time_s: number): RunData {
    const then = new RunData(this.cluster, this.model, 0, (rank) => {
      const { lanes } = this.devices[rank]!;
      return {
        compute: lanes.compute.until(time_s),
        send: lanes.send.until(time_s),
        recv: lanes.recv.until(time_s),
        wait: lanes.wait.until(time_s),
      };
    });
    then.service.serves = this.service.serves;
    then.attempt = this.attempt;
    for (let index = 0; index < this.history.length; index += 1) {
      const entry = this.history.at(index)!;
      if (entry.time_s <= time_s) then.applyOne(entry.event, 0);
    }
    for (const device of then.devices) {
      const { compute } = device.lanes;
      for (let index = 0; index < compute.length; index += 1)
        if (compute.kindAt(index) === 'load') countLoad(device, compute.view(index));
    }
    then.layers = LayerTimes.of(
      this.model.num_layers,
      this.layers,
      then.devices.map((device) => device.lanes.compute),
      time_s,
    );
    then.events = this.events;
    then.time_s = Math.min(time_s, this.time_s);
    return then;
  }

  private applyOne(event: RunEvent, now_ms: number): void {
    if (event.type === 'span') return this.applySpan(event);
    if (event.type === 'attempt') return this.beginAgain(event.words);
    this.applyOther(event, now_ms);
    this.history.push({ time_s: 'time_s' in event ? event.time_s : this.time_s, event });
  }

  private applyOther(event: Exclude<RunEvent, { type: 'span' | 'attempt' }>, now_ms: number): void {
    switch (event.type) {
      case 'mark':
        return this.applyMark(event);
      case 'state':
        this.state = event.state;
        this.stateDetail = event.detail;
        this.states.push({ state: event.state, detail: event.detail });
        if (isOver(event.state)) this.applySilence({});
        return this.addLog(null, 'state', event.detail ? `${event.state}: ${event.detail}` : event.state);
      case 'plan':
        return this.plans.begin(this.time_s, event);
      case 'links':
        return this.applyLinks(event);
      case 'clock':
        this.clock = { time_s: event.time_s, wall_s: event.wall_s, at_ms: now_ms };
        this.time_s = Math.max(this.time_s, event.time_s);
        return this.applySilence(event.silent_s ?? {});
      case 'log':
        return this.addLog(null, event.level, event.text);
      case 'process_log': {
        const device = this.byName.get(event.device);
        if (device) addOutput(device, event.time_s, event.lines);
        return;
      }
      case 'change_refused':
        this.refusals += 1;
        return this.addLog(null, 'error', `Change refused: ${event.reason}`);
      case 'request_refused':
        this.service.refuse(event.id, event.reason);
        return this.addLog(null, 'error', `Request refused: ${event.reason}`);
      case 'rest_predicted':
        this.rests.push(restOf(event));
        return this.addLog(event.at_s, 'info', `predicted from here on: ${restText(event)}`);
      case 'report':
        this.report = event;
        return;
    }
    event satisfies never; // A type error here: an event that no case applies.
  }

  /** Forgets everything but the log: the attempts so far do not count. */
  private beginAgain(attempt = ''): void {
    const { log, logKey, events, states } = this;
    const serves = this.service.serves;
    Object.assign(this, new RunData(this.cluster, this.model, this.spanBudget), {
      log,
      logKey,
      events,
      states,
      attempt,
    });
    this.service.serves = serves;
  }

  private applySpan(span: Span): void {
    const device = this.byName.get(span.device);
    if (device) {
      device.lanes[LANE_OF[span.kind]].push(span);
      countLoad(device, span);
    }
    this.time_s = Math.max(this.time_s, span.end_s);
    this.layers.add(span);
  }

  /** Devices that are not named have made a sign, or have no process any more. */
  private applySilence(silent_s: Readonly<Record<string, number>>): void {
    for (const device of this.devices) device.silent_s = silent_s[device.name] ?? null;
  }

  private applyLinks(event: Extract<RunEvent, { type: 'links' }>): void {
    this.time_s = Math.max(this.time_s, event.time_s);
    for (const sample of event.links) {
      const link = this.links[sample.link];
      if (!link) continue;
      const side = sample.forward ? link.forward : link.backward;
      side.use_bit_per_s = sample.bit_per_s;
      setRate(side, sample.set_bit_per_s);
      side.measured_bit_per_s = sample.measured_bit_per_s ?? side.measured_bit_per_s;
      link.up = sample.up;
    }
    for (const link of this.links)
      link.use.push(event.time_s, Math.max(utilisation(link.forward), utilisation(link.backward)));
  }

  private applyMark(mark: Mark): void {
    const { facts, name } = mark;
    this.time_s = Math.max(this.time_s, mark.time_s);
    const device = this.byName.get(mark.device || text(facts['device']));
    if (name === 'token_emitted') this.tokens.emitted(mark.time_s, facts);
    else if (name === 'request_arrived') this.tokens.arrived(mark.time_s, facts);
    else if (name === 'replanned') this.plans.replan(mark);
    else if (name === 'memory' && device) applyMemoryMark(device, mark);
    else if (DEVICE_MARKS.has(name) && device) applyDeviceMark(device, mark);
    else if (LINK_MARKS.has(name)) {
      const link = this.links.find((one) => isCalled(one, facts['link']));
      if (link) applyLinkMark(link, name, facts);
    }
    this.recoveries.apply(mark);
    this.heads.apply(mark);
    this.service.apply(mark);
    if (METHOD_MARKS.has(name)) this.methodMarks.push(mark);
    if (!QUIET_MARKS.has(name)) this.tell(mark);
  }

  private tell(mark: Mark): void {
    const injection = injectionOf(mark);
    if (injection) {
      this.injections.push(injection);
      this.changeMarks.push(mark);
    }
    const who = injection?.by ? ` (${injection.by})` : '';
    this.addLog(mark.time_s, injection ? 'injection' : 'info', `${describeMark(mark)}${who}`);
  }

  private addLog(time_s: number | null, level: LogEntry['level'], text: string): void {
    this.logKey += 1;
    this.log.push({ key: this.logKey, time_s, level, text });
  }
}
