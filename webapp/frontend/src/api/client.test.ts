import { afterEach, describe, expect, it, vi } from 'vitest';

import { api, askAhead, SilentServer } from './client';
import { queryClient, whenToAskAgain } from './queries';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** A server that answers the n-th request with the byte n, or refuses it; returns what was asked. */
function server(refused: readonly number[] = []): string[] {
  const asked: string[] = [];
  vi.stubGlobal('document', { cookie: '' });
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path);
    const status = refused.includes(asked.length) ? 503 : 200;
    return Promise.resolve(new Response(Uint8Array.of(asked.length), { status }));
  });
  return asked;
}

const byteOf = async (path: string) => new Uint8Array(await api.bytes(path))[0];

describe('askAhead', () => {
  it('makes a request whose answer the page gets once', async () => {
    const asked = server();
    askAhead('/past');
    expect(asked).toEqual(['/api/past']);
    expect(await byteOf('/other')).toBe(2);
    expect(await byteOf('/past')).toBe(1);
    expect(await byteOf('/past')).toBe(3);
  });

  it('leaves it to the page to ask again where the server refused', async () => {
    const asked = server([1, 2]);
    askAhead('/past');
    await expect(api.bytes('/past')).rejects.toThrow('503');
    expect(await byteOf('/past')).toBe(3);
    expect(asked).toEqual(['/api/past', '/api/past', '/api/past']);
  });
});

describe('a refusal', () => {
  it.each([
    [{ 'Retry-After': '2' }, 2_000],
    [{}, undefined],
  ])('with the headers %o is asked again after %s ms', async (headers, afterMs) => {
    vi.stubGlobal('document', { cookie: '' });
    const refused = () => Response.json({ detail: 'none is running.' }, { status: 503, headers });
    vi.stubGlobal('fetch', () => Promise.resolve(refused()));
    const error = await api.get('/x').catch((reason: unknown) => reason);
    expect(whenToAskAgain(error)).toBe(afterMs);
  });
});

describe('a server that says nothing', () => {
  /** Takes requests, and ends one only when it is told to; returns how many there were. */
  function silentServer(): { asked: number } {
    const count = { asked: 0 };
    vi.useFakeTimers();
    vi.stubGlobal('document', { cookie: '' });
    vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
      count.asked += 1;
      return new Promise((_answer, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
    return count;
  }

  it('is waited for once where the request was made ahead', async () => {
    const server = silentServer();
    askAhead('/past');
    await vi.advanceTimersByTimeAsync(5_000);
    const failed = expect(api.bytes('/past')).rejects.toBeInstanceOf(SilentServer);
    await vi.advanceTimersByTimeAsync(15_000);
    await failed;
    expect(server.asked).toBe(1);
  });

  it('is not waited for by a page that has been left', async () => {
    silentServer();
    askAhead('/past');
    const page = new AbortController();
    const failed = expect(api.bytes('/past', page.signal)).rejects.toThrow('aborted');
    page.abort();
    await failed;
    askAhead('/past');
    await expect(api.bytes('/past', page.signal)).rejects.toThrow('aborted');
  });

  it('is not asked again at once', async () => {
    const server = silentServer();
    const asked = queryClient.fetchQuery({
      queryKey: ['silent'],
      queryFn: ({ signal }) => api.read('/runs/7/events', signal),
      ...queryClient.getDefaultOptions().queries,
    });
    const failed = expect(asked).rejects.toThrow('nothing for 20 s');
    await vi.advanceTimersByTimeAsync(20_000);
    await failed;
    expect(server.asked).toBe(1);
  });
});

describe('the answer to a request for bytes', () => {
  /** A server whose answer comes part by part, as the test sends them. */
  function slowServer() {
    let body!: ReadableStreamDefaultController<Uint8Array>;
    vi.useFakeTimers();
    vi.stubGlobal('document', { cookie: '' });
    vi.stubGlobal('fetch', (_: string, { signal }: { signal: AbortSignal }) => {
      const stream = new ReadableStream<Uint8Array>({
        start: (controller) => {
          body = controller;
          signal.addEventListener('abort', () => controller.error(signal.reason));
        },
      });
      return Promise.resolve(new Response(stream));
    });
    return { send: (byte: number) => body.enqueue(Uint8Array.of(byte)), end: () => body.close() };
  }

  it('may take any time while something of it comes', async () => {
    const { send, end } = slowServer();
    const whole = api.bytes('/past');
    for (let byte = 0; byte < 20; byte += 1) {
      await vi.advanceTimersByTimeAsync(19_000);
      send(byte);
    }
    end();
    expect([...new Uint8Array(await whole)]).toEqual(Array.from({ length: 20 }, (_, byte) => byte));
    expect(vi.getTimerCount()).toBe(0);
  });

  it('ends with a sentence once nothing of it comes any more', async () => {
    const { send } = slowServer();
    const failed = expect(api.bytes('/past')).rejects.toThrow('nothing for 20 s');
    await vi.advanceTimersByTimeAsync(10_000);
    send(1);
    await vi.advanceTimersByTimeAsync(20_000);
    await failed;
  });

  it('is not waited for without end where the server does not begin it', async () => {
    vi.useFakeTimers();
    vi.stubGlobal('document', { cookie: '' });
    vi.stubGlobal(
      'fetch',
      (_: string, { signal }: { signal: AbortSignal }) =>
        new Promise((_answer, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        ),
    );
    const failed = expect(api.bytes('/past')).rejects.toThrow('try again');
    await vi.advanceTimersByTimeAsync(20_000);
    await failed;
  });

  it('is no failure of the server when the page itself has stopped asking', async () => {
    slowServer();
    const page = new AbortController();
    const failed = expect(api.bytes('/past', page.signal)).rejects.toThrow('aborted');
    await vi.advanceTimersByTimeAsync(1_000);
    page.abort();
    await failed;
  });
});
