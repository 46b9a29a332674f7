import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import type { RunEvent } from '@/api/types';
import { RunData } from '@/run/data/runData';
import { Feed, isAfter } from './feed';
import { cluster, model, span } from '@/run/data/fixtures';

/** A run's event log behind sockets that may be cut at any moment: replays everything after `since`. */
class Server {
  readonly log: { cursor: string; events: RunEvent[] }[] = [];
  readonly sockets: FakeSocket[] = [];
  head = '0';
  open = (url: string) => {
    const socket = new FakeSocket(url);
    this.sockets.push(socket);
    return socket as unknown as WebSocket;
  };

  get current(): FakeSocket {
    return this.sockets.at(-1)!;
  }

  append(events: RunEvent[]): void {
    this.log.push({ cursor: String(this.log.length + 1), events });
  }

  /** Sends everything that the newest socket has not had yet, `repeat` times over. */
  deliver(repeat = 1): void {
    const socket = this.current;
    for (const entry of this.log.filter((one) => isAfter(one.cursor, socket.since))) {
      for (let n = 0; n < repeat; n += 1) socket.send(entry.cursor, entry.events, this.head);
      socket.since = entry.cursor;
    }
  }
}

class FakeSocket {
  since: string;
  closed = false;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((event: { code: number }) => void) | null = null;

  constructor(readonly url: string) {
    this.since = new URL(url).searchParams.get('since')!;
  }

  send(cursor: string, events: RunEvent[], head = '0'): void {
    if (!this.closed)
      this.onmessage?.({ data: JSON.stringify({ cursor, head, events, server_time: Date.now() / 1000 }) });
  }

  cut(code = 1006): void {
    this.closed = true;
    this.onclose?.({ code });
  }

  close(): void {
    this.closed = true;
  }
}

function watch(server: Server) {
  const data = new RunData(cluster, model);
  const feed = new Feed({
    url: 'ws://lab/ws/runs/7',
    open: server.open,
    onEvents: (events) => data.apply(events),
    isComplete: () => data.report !== null && data.state === 'finished',
  });
  feed.start();
  return { data, feed };
}

const tokensOf = (data: RunData) => {
  const ring = data.device('a')!.lanes.compute;
  return Array.from({ length: ring.length }, (_, index) => ring.view(index).token);
};

describe('Feed', () => {
  beforeEach(() => vi.useFakeTimers());
  afterEach(() => vi.useRealTimers());

  it('catches up until it has the newest batch that there was when it connected', () => {
    const server = new Server();
    const { feed } = watch(server);
    server.append([span({ token: 0 })]);
    server.head = '3';
    server.deliver();
    expect(feed.state).toBe('catching up');
    server.append([span({ token: 1 })]);
    server.append([span({ token: 2 })]);
    server.deliver();
    expect(feed.state).toBe('live');
  });

  it('loses nothing and repeats nothing when the connection is cut again and again', () => {
    const server = new Server();
    const { data, feed } = watch(server);
    for (let n = 0; n < 300; n += 1) {
      server.append([span({ token: n })]);
      if (n % 3 === 0) server.deliver();
      if (n % 17 === 0) {
        server.current.cut();
        vi.advanceTimersByTime(300);
      }
    }
    server.deliver();
    expect(tokensOf(data)).toEqual(Array.from({ length: 300 }, (_, n) => n));
    expect(feed.reconnects).toBe(18);
    feed.stop();
  });

  it('asks for what comes after the last frame that it applied', () => {
    const server = new Server();
    const { feed } = watch(server);
    server.append([span()]);
    server.append([span()]);
    server.deliver();
    server.current.cut();
    vi.advanceTimersByTime(10_000);
    expect(server.current.url).toBe('ws://lab/ws/runs/7?since=2');
    feed.stop();
  });

  it('ignores frames that it has applied already', () => {
    const server = new Server();
    const { data, feed } = watch(server);
    for (let n = 0; n < 5; n += 1) server.append([span({ token: n })]);
    server.deliver(3);
    expect(tokensOf(data)).toEqual([0, 1, 2, 3, 4]);
    feed.stop();
  });

  it('ignores what an abandoned connection still delivers', () => {
    const server = new Server();
    const { data, feed } = watch(server);
    server.append([span({ token: 0 })]);
    const old = server.current;
    old.cut();
    vi.advanceTimersByTime(10_000);
    old.onmessage?.({ data: JSON.stringify({ cursor: '9', events: [span()], server_time: 0 }) });
    server.deliver();
    expect(tokensOf(data)).toEqual([0]);
    feed.stop();
  });

  it('waits longer after every failure and starts afresh after a success', () => {
    const server = new Server();
    const { feed } = watch(server);
    const waits: number[] = [];
    for (let n = 0; n < 7; n += 1) {
      const before = server.sockets.length;
      server.current.cut();
      let waited = 0;
      while (server.sockets.length === before) {
        vi.advanceTimersByTime(50);
        waited += 50;
      }
      waits.push(waited);
    }
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 8000]);
    server.append([span()]);
    server.deliver();
    server.current.cut();
    vi.advanceTimersByTime(250);
    expect(server.sockets.length).toBe(9);
    feed.stop();
  });

  it('drops a connection that has fallen silent', () => {
    const server = new Server();
    const { feed } = watch(server);
    server.append([span()]);
    server.deliver();
    expect(feed.state).toBe('live');
    vi.advanceTimersByTime(7_900);
    expect(feed.state).toBe('reconnecting');
    vi.advanceTimersByTime(300);
    expect(server.sockets.length).toBe(2);
    feed.stop();
  });

  it('stays on a connection whose heartbeat comes', () => {
    const server = new Server();
    const { feed } = watch(server);
    for (let n = 0; n < 20; n += 1) {
      server.current.send('0', []);
      vi.advanceTimersByTime(2_000);
    }
    expect(server.sockets.length).toBe(1);
    expect(feed.lastEventAt_ms).toBeNull();
    feed.stop();
  });

  it('measures the lag above the quickest frame, whatever the two clocks say', () => {
    const server = new Server();
    const { feed } = watch(server);
    const at = (arrival_ms: number, server_s: number) => {
      vi.setSystemTime(arrival_ms);
      server.current.onmessage?.({
        data: JSON.stringify({ cursor: '0', events: [], server_time: server_s }),
      });
      return feed.lag_ms;
    };
    // The server's clock is 5 s behind: a frame sent at 100 s by its clock arrives at 105 s and something.
    expect(at(105_080, 100)).toBe(0);
    expect(at(107_030, 102)).toBe(0);
    expect(at(109_330, 104)).toBe(300);
    feed.stop();
  });

  it('starts from its cursor only after it has applied the events', () => {
    const server = new Server();
    const cursors: string[] = [];
    const feed = new Feed({
      url: 'ws://lab/ws/runs/7',
      open: server.open,
      onEvents: () => cursors.push(feed.cursor),
    });
    feed.start();
    server.current.send('1', []);
    expect(feed.cursor).toBe('0');
    server.current.send('3', [span()]);
    server.current.send('2', [span()]);
    expect([feed.cursor, cursors.length]).toEqual(['3', 1]);
    feed.stop();
  });

  it('says every change of its state once', () => {
    const server = new Server();
    const states: string[] = [];
    const feed = new Feed({
      url: 'ws://lab/ws/runs/7',
      open: server.open,
      onEvents: () => undefined,
      onChange: () => states.push(feed.state),
    });
    feed.start();
    server.current.send('0', []);
    server.current.send('0', []);
    server.current.cut();
    vi.advanceTimersByTime(250);
    server.current.send('0', []);
    expect(states).toEqual(['live', 'reconnecting', 'live']);
    feed.stop();
  });

  it('opens no connection after it was stopped', () => {
    const server = new Server();
    const { feed } = watch(server);
    server.current.cut();
    feed.stop();
    vi.advanceTimersByTime(60_000);
    expect(server.sockets.length).toBe(1);
  });

  it('connects at once when it is told not to wait, and only if it waits', () => {
    const server = new Server();
    const { feed } = watch(server);
    feed.retry();
    expect(server.sockets.length).toBe(1);
    server.current.cut();
    feed.retry();
    expect(server.sockets.length).toBe(2);
    feed.retry();
    vi.advanceTimersByTime(5_000);
    expect(server.sockets.length).toBe(2);
    feed.stop();
    feed.retry();
    expect(server.sockets.length).toBe(2);
  });

  it('gives up with a sentence when the server refuses', () => {
    const server = new Server();
    const { feed } = watch(server);
    server.current.cut(4404);
    vi.advanceTimersByTime(60_000);
    expect(feed.state).toBe('refused');
    expect(feed.reason).toContain('no such run');
    expect(server.sockets.length).toBe(1);
    feed.stop();
  });

  it('ends when report and final state are there, and does not ask again', () => {
    const server = new Server();
    const { data, feed } = watch(server);
    server.append([{ type: 'report', outcome: { kind: 'finished' } } as unknown as RunEvent]);
    server.deliver();
    expect(feed.state).toBe('live');
    server.append([{ type: 'state', state: 'finished', detail: '' }]);
    server.deliver();
    vi.advanceTimersByTime(60_000);
    expect(feed.state).toBe('ended');
    expect(data.report).not.toBeNull();
    expect(server.sockets.length).toBe(1);
  });
});

describe('a Feed with a past', () => {
  /** A feed whose past has these parts and may then break; and what became of it. */
  function opened(parts: { cursor: string; events: RunEvent[] }[], breaks = false) {
    const server = new Server();
    const data = new RunData(cluster, model);
    const asked: string[] = [];
    const feed = new Feed({
      url: 'ws://lab/ws/runs/7',
      open: server.open,
      onEvents: (events) => data.apply(events),
      isComplete: () => data.state === 'finished',
      past: async function* (since) {
        asked.push(since);
        for (const { cursor, events } of parts.filter((part) => isAfter(part.cursor, since))) {
          await Promise.resolve();
          yield Object.assign([...events], { cursor });
        }
        if (breaks) throw new Error('the server does not answer');
      },
    });
    feed.start();
    return { server, data, feed, asked, done: () => new Promise((resolve) => setTimeout(resolve)) };
  }
  const past = [
    { cursor: '1', events: [span({ token: 0 }), span({ token: 1 })] },
    { cursor: '4', events: [span({ token: 2 })] },
  ];

  it('reads it first, catching up, and asks the connection for what comes after it', async () => {
    const { server, data, feed, asked, done } = opened(past);
    expect([feed.state, server.sockets.length]).toEqual(['catching up', 0]);
    await done();
    expect(asked).toEqual(['0']);
    expect(server.current.url).toBe('ws://lab/ws/runs/7?since=4');
    expect(feed.state).toBe('catching up');
    server.current.send('4', [], '4');
    expect(feed.state).toBe('live');
    server.current.send('5', [span({ token: 3 })], '4');
    expect(tokensOf(data)).toEqual([0, 1, 2, 3]);
    feed.stop();
  });

  it('has the connection bring what could not be read, and says why until it does', async () => {
    const { server, data, feed, done } = opened(past.slice(0, 1), true);
    await done();
    expect([feed.state, feed.reason]).toEqual(['reconnecting', 'the server does not answer']);
    expect(server.current.url).toBe('ws://lab/ws/runs/7?since=1');
    server.current.send('4', past[1]!.events, '4');
    expect(tokensOf(data)).toEqual([0, 1, 2]);
    expect([feed.state, feed.reason]).toEqual(['live', '']);
    feed.stop();
  });

  it('opens no connection if it has everything, or was stopped meanwhile', async () => {
    const over: RunEvent = { type: 'state', state: 'finished', detail: '' };
    const complete = opened([{ cursor: '1', events: [over] }]);
    await complete.done();
    expect([complete.feed.state, complete.server.sockets.length]).toEqual(['ended', 0]);
    const stopped = opened(past);
    stopped.feed.stop();
    await stopped.done();
    expect([stopped.data.events, stopped.server.sockets.length]).toEqual([0, 0]);
  });

  it('loses no event that cannot be shown: it says so and ends', async () => {
    for (const [ofPast, cursor] of [
      [true, '0'],
      [false, '4'],
    ] as const) {
      const { server, data, feed, done } = opened(past);
      const fails = () => {
        throw new Error('no such lane');
      };
      if (ofPast) data.apply = fails;
      await done();
      if (!ofPast) {
        data.apply = fails;
        server.current.send('5', [span({ token: 3 })], '5');
      }
      expect([feed.state, feed.cursor]).toEqual(['refused', cursor]);
      expect(feed.reason).toBe('This page cannot show an event of the run (no such lane): reload it.');
      expect(server.sockets.length).toBe(ofPast ? 0 : 1);
      expect(feed.waits).toBe(false);
    }
  });

  it('goes on where it was when it is started again', async () => {
    const { feed, data, asked, done } = opened(past);
    await done();
    feed.stop();
    feed.start();
    await done();
    expect(asked).toEqual(['0', '4']);
    expect(tokensOf(data)).toEqual([0, 1, 2]);
    feed.stop();
  });
});

describe('isAfter', () => {
  it('compares cursors as numbers', () => {
    expect(isAfter('10', '9')).toBe(true);
    expect(isAfter('9', '9')).toBe(false);
    expect(isAfter('1', '0')).toBe(true);
  });
});
