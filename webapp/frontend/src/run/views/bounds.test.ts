import { describe, expect, it } from 'vitest';
import { sharesOf } from './bounds';

describe('sharesOf', () => {
  it('gives every member its share, and nothing to a member without one', () => {
    expect(sharesOf([2, 0, 1], [0, 3, 3, 8])).toEqual([
      [2, 0, 3],
      [1, 3, 8],
    ]);
  });
});
