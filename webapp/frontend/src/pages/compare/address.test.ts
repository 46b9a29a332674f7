import { describe, expect, it } from 'vitest';
import { chosenIn, unknownIn, without } from './address';

describe('the address of a comparison', () => {
  it('has the choices of its figure, without what is none', () => {
    const address = new URLSearchParams('ids=1,2&y=ttft_s&hue=&as=boxes&logx=yes');
    expect(chosenIn(address)).toEqual([
      ['y', 'ttft_s'],
      ['hue', ''],
      ['as', 'boxes'],
    ]);
    expect(unknownIn(address)).toEqual(['The address has logx=yes, expected 1 or 0: it is ignored.']);
  });

  it('names a baseline that is left, and what else it had', () => {
    const address = new URLSearchParams('ids=1,2,3&baseline=2&as=boxes');
    expect(without(address, [3]).toString()).toBe('ids=1%2C2&baseline=2&as=boxes');
    expect(without(address, [2]).toString()).toBe('ids=1%2C3&baseline=1&as=boxes');
  });
});
