import { describe, expect, it } from 'vitest';
import { whenToGoOn } from './useAdvice';

describe('advice', () => {
  it('is asked for again only while there was no time for some strategies', () => {
    expect(whenToGoOn({ finished: false })).toBeGreaterThan(0);
    expect(whenToGoOn({ finished: true })).toBe(false);
    expect(whenToGoOn(undefined)).toBe(false);
  });
});
