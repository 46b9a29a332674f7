import { afterEach, expect, it, vi } from 'vitest';
import type { RunRequest } from '@/api/types';
import { startRun, workersThere } from './startRun';

afterEach(() => vi.unstubAllGlobals());

it('asks for the run once the workers are there', async () => {
  const asked: string[] = [];
  const answers = [{ starting: false }, { id: 7 }];
  vi.stubGlobal('document', { cookie: '' });
  vi.stubGlobal('fetch', (path: string) => {
    asked.push(path);
    return Promise.resolve(Response.json(answers.shift()));
  });
  expect(await startRun({} as RunRequest)).toEqual({ id: 7 });
  expect(asked.map((path) => path.replace(/.*\/api/, ''))).toEqual(['/health', '/runs']);
});

it('waits for the workers of a server that has just begun', async () => {
  const answers = [true, true, false, true];
  vi.stubGlobal('document', { cookie: '' });
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ starting: answers.shift() })));
  await workersThere(0);
  expect(answers).toEqual([true]);
});
