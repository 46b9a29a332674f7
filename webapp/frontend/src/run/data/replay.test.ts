import { expect, it } from 'vitest';
import { packed, unpacked } from './replay';

it('gives back the bytes that it has packed', async () => {
  const bytes = Uint8Array.from({ length: 5000 }, (_, at) => (at * 7) % 256);
  const text = await packed(bytes.buffer);
  expect(text).toMatch(/^[A-Za-z0-9+/=]+$/);
  expect(text.length).toBeLessThan(5000);
  expect(new Uint8Array(await unpacked(text))).toEqual(bytes);
});
