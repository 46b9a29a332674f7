import { describe, expect, it } from 'vitest';
import { chosenIn, unknownIn } from './address';

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
});
