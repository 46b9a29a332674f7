import { afterEach, describe, expect, it, vi } from 'vitest';

import { api, askAhead } from './client';

afterEach(() => vi.unstubAllGlobals());

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
