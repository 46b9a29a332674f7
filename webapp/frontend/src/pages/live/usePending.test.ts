import { describe, expect, it } from 'vitest';
import { awaitedAfter } from './usePending';

describe('changes that wait for their answers', () => {
  it('a change waits for one answer more than there are', () => {
    expect(awaitedAfter(4, 4)).toBe(5);
    expect(awaitedAfter(0, 7)).toBe(8);
  });

  it('a second change that is sent before the first is answered waits for both answers', () => {
    const first = awaitedAfter(4, 4);
    expect(awaitedAfter(first, 4)).toBe(6);
  });
});
