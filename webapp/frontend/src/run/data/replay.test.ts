import { expect, it } from 'vitest';
import { cluster, model } from './fixtures';
import { packed, replayed, unpacked } from './replay';

it('gives back the bytes that it has packed', async () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, at) => (at * 7) % 256);
  const text = await packed(bytes.buffer);
  expect(text).toMatch(/^[A-Za-z0-9+/=]+$/);
  expect(text.length).toBeLessThan(5000);
  expect(new Uint8Array(await unpacked(text))).toEqual(bytes);
});

it('knows a service, whose devices wait for somebody to ask', async () => {
  const pattern = async (workload: object) => {
    const run = { title: '', about: '', address: '', spec: { cluster, model, workload } };
    return (await replayed(JSON.stringify({ run, pages: [], events: [] }))).data.service.serves;
  };
  expect(await pattern({ pattern: 'serve' })).toBe(true);
  expect(await pattern({ pattern: 'sporadic' })).toBe(false);
});
