import { describe, expect, it } from 'vitest';
import { nameAfter } from './useKeep';

describe('the name of what is kept', () => {
  it('follows the title, and no other has it', () => {
    const title = 'Time to first token by rate';
    expect(nameAfter(title, [])).toBe('time-to-first-token-by-rate');
    const taken = [{ name: 'time-to-first-token-by-rate' }, { name: 'time-to-first-token-by-rate-2' }];
    expect(nameAfter(title, taken)).toBe('time-to-first-token-by-rate-3');
    expect(nameAfter('…', [])).toBe('kept');
  });
});
