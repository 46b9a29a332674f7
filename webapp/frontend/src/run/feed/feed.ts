/** The event feed of one run: first its past, then a WebSocket with a cursor. However often the connection fails,
 * every event reaches `onEvents` exactly once and in order: the server sends what comes after the last cursor that
 * was applied. */
import type { EventFrame, RunEvent } from '@/api/types';

const FIRST_RETRY_MS = 250;
const MAX_RETRY_MS = 8_000;
/** The server sends a heartbeat every 2 s; after this long without a frame the connection counts as dead. */
const SILENCE_MS = 7_000;

export type FeedState = 'connecting' | 'catching up' | 'live' | 'reconnecting' | 'refused' | 'ended';

/** Some events; `cursor` is the number of their last batch. */
interface Part extends Iterable<RunEvent> {
  readonly cursor: string;
}

export interface FeedOptions {
  /** Address without a cursor, for example `ws://host/ws/runs/7`. */
  url: string;
  onEvents: (events: Iterable<RunEvent>, now_ms: number) => void;
  /** Reads the events after a cursor that there are now. What it does not bring, the WebSocket does. */
  past?: (since: string, signal: AbortSignal) => AsyncIterable<Part>;
  onChange?: () => void;
  /** Whether all events of the run have arrived: then the feed closes. */
  isComplete?: () => boolean;
  open?: (url: string) => WebSocket;
  now?: () => number;
}

/** Close codes after which reconnecting is useless. */
const REFUSALS = new Map<number, string>([
  [4400, 'The server does not accept the cursor of this page: reload it.'],
  [4401, 'You are logged out: log in again.'],
  [4404, 'There is no such run.'],
]);

export class Feed {
  state: FeedState = 'connecting';
  reason = '';
  cursor = '0';
  /** The newest batch that there was when the connection was made; until the cursor is there, this is the past. */
  head = '0';
  reconnects = 0;
  /** Milliseconds from sending to arrival, minus the smallest seen: the two clocks may differ. */
  lag_ms = 0;
  lastFrameAt_ms: number | null = null;
  lastEventAt_ms: number | null = null;
  private socket: WebSocket | null = null;
  private reading: AbortController | null = null;
  private retry_ms = FIRST_RETRY_MS;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private watchdog: ReturnType<typeof setInterval> | undefined;
  private smallestOffset_ms = Infinity;
  private readonly now: () => number;

  constructor(private readonly options: FeedOptions) {
    this.now = options.now ?? Date.now;
    if (options.past) this.state = 'catching up';
  }

  start(): void {
    this.watchdog = setInterval(() => this.dropIfSilent(), 1_000);
    if (this.options.past) void this.readPast(this.options.past);
    else this.connect();
  }

  stop(): void {
    this.reading?.abort();
    this.reading = null;
    this.cancelRetry();
    clearInterval(this.watchdog);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  private async readPast(past: NonNullable<FeedOptions['past']>): Promise<void> {
    const reading = new AbortController();
    this.reading = reading;
    try {
      for await (const part of past(this.cursor, reading.signal)) {
        if (reading.signal.aborted) return;
        if (!this.take(part.cursor, part)) return;
      }
    } catch (error) {
      // The WebSocket brings what is missing, or says why it cannot.
      if (!reading.signal.aborted)
        this.change('reconnecting', error instanceof Error ? error.message : String(error));
    }
    if (reading.signal.aborted) return;
    if (this.options.isComplete?.()) this.end();
    else this.connect();
  }

  /** Hands events on. False if they cannot be shown: others after them would make a wrong picture, so it ends. */
  private take(cursor: string, events: Iterable<RunEvent>): boolean {
    const now = this.now();
    try {
      this.options.onEvents(events, now);
    } catch (error) {
      this.stop();
      const why = error instanceof Error ? error.message : String(error);
      this.change('refused', `This page cannot show an event of the run (${why}): reload it.`);
      return false;
    }
    this.lastEventAt_ms = now;
    this.cursor = cursor;
    return true;
  }

  private connect(): void {
    this.cancelRetry();
    const open = this.options.open ?? ((url: string) => new WebSocket(url));
    const socket = open(`${this.options.url}?since=${encodeURIComponent(this.cursor)}`);
    this.socket = socket;
    this.lastFrameAt_ms = this.now();
    socket.onmessage = (message: MessageEvent<string>) => {
      if (this.socket === socket) this.receive(JSON.parse(message.data) as EventFrame);
    };
    socket.onclose = (event: CloseEvent) => {
      if (this.socket === socket) this.reconnect(event.code);
    };
  }

  private receive(frame: EventFrame): void {
    const now = this.now();
    this.lastFrameAt_ms = now;
    this.retry_ms = FIRST_RETRY_MS;
    const offset = now - frame.server_time * 1_000;
    this.smallestOffset_ms = Math.min(this.smallestOffset_ms, offset);
    this.lag_ms = offset - this.smallestOffset_ms;
    if (frame.events.length > 0 && isAfter(frame.cursor, this.cursor)) {
      if (!this.take(frame.cursor, frame.events)) return;
      if (this.options.isComplete?.()) return this.end();
    }
    this.head = frame.head;
    this.change(isAfter(frame.head, this.cursor) ? 'catching up' : 'live', '');
  }

  private cancelRetry(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private end(): void {
    this.stop();
    this.change('ended', '');
  }

  private reconnect(code: number): void {
    this.socket = null;
    const refusal = REFUSALS.get(code);
    if (refusal) {
      clearInterval(this.watchdog);
      return this.change('refused', refusal);
    }
    this.timer = setTimeout(() => this.connect(), this.retry_ms);
    this.retry_ms = Math.min(this.retry_ms * 2, MAX_RETRY_MS);
    this.reconnects += 1;
    this.change('reconnecting', 'Connection lost; reconnecting.');
  }

  /** Whether it waits for the next attempt to connect. */
  get waits(): boolean {
    return this.timer !== undefined;
  }

  /** Connects now if it waits. */
  retry(): void {
    if (this.waits) this.connect();
  }

  /** A half-open connection never closes by itself: close it and reconnect. */
  private dropIfSilent(): void {
    const socket = this.socket;
    if (!socket || this.lastFrameAt_ms === null || this.now() - this.lastFrameAt_ms < SILENCE_MS) return;
    this.socket = null;
    socket.close();
    this.reconnect(1006);
  }

  private change(state: FeedState, reason: string): void {
    if (state === this.state && reason === this.reason) return;
    this.state = state;
    this.reason = reason;
    this.options.onChange?.();
  }
}

/** Whether a cursor is after another one: cursors are numbers of batches, 1, 2, 3, …; 0 is before all. */
export function isAfter(cursor: string, than: string): boolean {
  return Number(cursor) > Number(than);
}

/** Address of the feed of run `id` on the server that this page came from. */
export function feedUrl(id: number): string {
  const scheme = window.location.protocol === 'https:' ? 'wss' : 'ws';
  return `${scheme}://${window.location.host}/ws/runs/${id}`;
}
