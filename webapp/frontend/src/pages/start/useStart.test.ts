import { afterEach, expect, it, vi } from 'vitest';
import { workersThere } from './useStart';

afterEach(() => vi.unstubAllGlobals());

it('waits for the workers of a server that has just begun', async () => {
  const answers = [true, true, false, true];
  vi.stubGlobal('document', { cookie: '' });
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ starting: answers.shift() })));
  await workersThere(0);
  expect(answers).toEqual([true]);
});
