import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RunEvent, RunSpec } from '@/api/types';
import { cluster, encoded, model, span } from '@/run/data/fixtures';
import { RunStore } from './store';

type Batch = [cursor: number, events: RunEvent[]];

/** The server of run 7: its past in answers of these batches, and a WebSocket through which the test sends. */
class Server {
  readonly asked: string[] = [];
  readonly sockets: Socket[] = [];

  constructor(private readonly answers: (Batch[] | 'refused')[]) {
    const { sockets } = this;
    vi.stubGlobal('window', { location: { protocol: 'http:', host: 'lab' } });
    vi.stubGlobal('document', { cookie: '' });
    vi.stubGlobal('fetch', (path: string) => Promise.resolve(this.answer(path)));
    vi.stubGlobal(
      'WebSocket',
      class extends Socket {
        constructor(url: string) {
          super(url);
          sockets.push(this);
        }
      },
    );
  }

  private answer(path: string): Response {
    const batches = this.answers[this.asked.push(path) - 1] ?? [];
    if (batches === 'refused') return new Response('', { status: 503 });
    const chunks = batches.map(([cursor, events]) => new Uint8Array(encoded(events, String(cursor))));
    const isLast = this.asked.length === this.answers.length;
    return new Response(new Blob(isLast ? [...chunks, new Uint8Array(4)] : chunks));
  }

  get socket(): Socket {
    return this.sockets.at(-1)!;
  }
}

class Socket {
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;
  closed = false;

  constructor(readonly url: string) {}

  send(cursor: number, events: RunEvent[], head = cursor): void {
    const frame = { cursor: String(cursor), head: String(head), events, server_time: 0 };
    this.onmessage?.({ data: JSON.stringify(frame) });
  }

  close(): void {
    this.closed = true;
  }
}

const PAST = '/api/runs/7/past';
const mark = (name: string, facts: Record<string, unknown>): RunEvent =>
  ({ type: 'mark', time_s: 1, name, device: '', facts }) as RunEvent;
const token = (index: number) => mark('token_emitted', { request: 0, index, text: ` t${index}` });
const finished: RunEvent = { type: 'state', state: 'finished', detail: '' };
const report = { type: 'report', outcome: { kind: 'finished' }, dilation: 4 } as unknown as RunEvent;
const over: RunEvent[] = [report, finished];

/** A started store, after all answers about the past have come. */
async function watched(answers: (Batch[] | 'refused')[]) {
  const server = new Server(answers);
  const store = new RunStore(7, { cluster, model, workload: {} } as RunSpec, 2);
  const pictures = vi.fn();
  store.subscribe(pictures);
  store.start();
  await vi.advanceTimersByTimeAsync(0);
  const tokens = () => store.snapshot().tokens.map(({ index }) => index);
  return { server, store, pictures, tokens };
}

describe('a RunStore', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it('reads the past answer by answer, then follows the connection from there', async () => {
    const { server, store, tokens } = await watched([
      [
        [3, [token(0)]],
        [5, [token(1)]],
      ],
      [[8, [token(2)]]],
    ]);
    expect(server.asked).toEqual([`${PAST}?since=0`, `${PAST}?since=5`]);
    expect(server.socket.url).toBe('ws://lab/ws/runs/7?since=8');
    server.socket.send(8, []);
    server.socket.send(9, [token(3)]);
    vi.advanceTimersByTime(250);
    expect(tokens()).toEqual([0, 1, 2, 3]);
    store.stop();
  });

  it('has the connection bring the rest where only the first answer about the past came', async () => {
    const { server, store, tokens } = await watched([[[3, [token(0)]]], 'refused']);
    expect(store.feed.state).toBe('reconnecting');
    expect(server.socket.url).toBe('ws://lab/ws/runs/7?since=3');
    server.socket.send(3, [], 5);
    server.socket.send(5, [token(1), token(2)], 5);
    expect([store.feed.state, tokens()]).toEqual(['live', [0, 1, 2]]);
    store.stop();
  });

  it('counts events once that arrive twice', async () => {
    const { server, store, tokens } = await watched([[[3, [token(0)]]]]);
    server.socket.send(3, [token(0)]);
    server.socket.send(4, [token(1)]);
    server.socket.send(4, [token(1)]);
    vi.advanceTimersByTime(250);
    expect(tokens()).toEqual([0, 1]);
    store.stop();
  });

  it('asks for what it has missed while there was no connection', async () => {
    const { server, store, tokens } = await watched([[[3, [token(0)]]]]);
    server.socket.send(3, []);
    server.socket.onclose?.({ code: 1006 });
    await vi.advanceTimersByTimeAsync(250);
    expect(server.sockets.map(({ url }) => url)).toEqual(Array(2).fill('ws://lab/ws/runs/7?since=3'));
    server.socket.send(3, [], 6);
    expect(store.feed.state).toBe('catching up');
    server.socket.send(6, [token(1), token(2), token(3)], 6);
    expect([store.feed.state, tokens()]).toEqual(['live', [0, 1, 2, 3]]);
    store.stop();
  });

  it('shows a run that had stopped before without a connection', async () => {
    const { server, store, tokens } = await watched([[[9, [token(0), ...over]]]]);
    expect(server.sockets).toEqual([]);
    expect(store.feed.state).toBe('ended');
    expect([store.snapshot().state, tokens()]).toEqual(['finished', [0]]);
    store.stop();
  });

  it('shows the end of a run at once, and closes the connection', async () => {
    const { server, store } = await watched([[]]);
    server.socket.send(1, over.slice(1));
    expect(store.feed.state).toBe('live');
    server.socket.send(2, over.slice(0, 1));
    expect([store.feed.state, server.socket.closed]).toEqual(['ended', true]);
    expect(store.snapshot()).toMatchObject({ state: 'finished', report });
    store.stop();
  });

  it('takes a picture every 250 ms if something has come', async () => {
    const { server, store, pictures } = await watched([[]]);
    server.socket.send(1, [token(0)]);
    vi.advanceTimersByTime(250);
    const [before, { version }] = [pictures.mock.calls.length, store.snapshot()];
    for (let at = 1; at <= 10; at += 1) server.socket.send(1 + at, [token(at)]);
    expect(pictures).toHaveBeenCalledTimes(before);
    vi.advanceTimersByTime(250);
    expect(pictures).toHaveBeenCalledTimes(before + 1);
    expect(store.snapshot().version).toBe(version + 1);
    const picture = store.snapshot();
    vi.advanceTimersByTime(5_000);
    expect(store.snapshot()).toBe(picture);
    store.stop();
  });

  it('takes a picture every second while it catches up', async () => {
    const { server, store, pictures } = await watched([[]]);
    server.socket.send(0, [], 100);
    const before = pictures.mock.calls.length;
    for (let at = 1; at <= 16; at += 1) {
      server.socket.send(at, [span({ token: at })], 100);
      vi.advanceTimersByTime(250);
    }
    expect(pictures.mock.calls.length - before).toBe(4);
    store.stop();
  });

  it('shows the answer to a change at once', async () => {
    const { server, store } = await watched([[]]);
    server.socket.send(0, []);
    server.socket.send(1, [mark('link_changed', { link: 'a--b', bit_per_s: 1e6 })]);
    expect(store.snapshot().injections).toHaveLength(1);
    server.socket.send(2, [{ type: 'change_refused', reason: 'no such link' }]);
    expect(store.snapshot().refusals).toBe(1);
    store.stop();
  });

  it('does nothing more after it was stopped, and goes on where it was when it is started again', async () => {
    const { server, store, pictures, tokens } = await watched([[[3, [token(0)]]]]);
    server.socket.send(3, []);
    const [first, before] = [server.socket, pictures.mock.calls.length];
    store.stop();
    expect(vi.getTimerCount()).toBe(0);
    first.send(4, [token(1)]);
    vi.advanceTimersByTime(60_000);
    expect([first.closed, server.sockets.length]).toEqual([true, 1]);
    expect(pictures).toHaveBeenCalledTimes(before);
    store.start();
    await vi.advanceTimersByTimeAsync(0);
    expect(server.asked.at(-1)).toBe(`${PAST}?since=3`);
    server.socket.send(4, [token(1)]);
    vi.advanceTimersByTime(250);
    expect(tokens()).toEqual([0, 1]);
    store.stop();
  });
});
