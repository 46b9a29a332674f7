import { expect, test } from 'vitest';
import { fromParam, inWords } from './plan';

test('only what names devices is a plan', () => {
  expect(fromParam({ devices: [{ device: 'desk', layers: 2 }] })?.devices).toHaveLength(1);
  for (const other of [null, 3, {}, { devices: [] }, { devices: ['desk'] }, { stages: [] }])
    expect(fromParam(other)).toBeNull();
});

test('a plan in words has every device with what it gets', () => {
  const plan = fromParam({
    devices: [{ device: 'desk', heads: 5, columns: 400 }, { device: 'shelf', heads: 3 }, { device: 'door' }],
  });
  expect(plan && inWords(plan)).toBe('desk 5 heads and 400 columns, shelf 3 heads, door nothing');
});
