import { expect, it } from 'vitest';
import { hashOf, momentIn } from './moment';

it('reads the instant that it has written', () => {
  expect(momentIn(hashOf(1.25))).toBe(1.25);
  expect(momentIn(hashOf(0))).toBe(0);
  expect(hashOf(null)).toBe('');
});

it('finds none in other anchors', () => {
  for (const hash of ['', '#tokens', '#t=', '#t=soon', '#t=-1']) expect(momentIn(hash)).toBeNull();
});
