import { describe, expect, it } from 'vitest';
import { beside, crosses, pathOf } from './polyline';

const at = (x: number, y: number) => ({ x, y });
const corner = [at(0, 0), at(10, 0), at(10, 10)];

describe('the line beside another one', () => {
  it('keeps its distance from every part', () => {
    expect(beside([at(0, 0), at(10, 0)], 2)).toEqual([at(0, 2), at(10, 2)]);
    // To the right of the first part is inside the corner, where both parts end earlier.
    expect(beside(corner, 2)).toEqual([at(0, 2), at(8, 2), at(8, 10)]);
    expect(beside(corner, -2)).toEqual([at(0, -2), at(12, -2), at(12, 10)]);
  });

  it('stays near where a line turns back', () => {
    for (const { x, y } of beside([at(0, 0), at(10, 0), at(0, 0.01)], 2))
      expect(Math.hypot(x, y)).toBeLessThan(17);
  });
});

describe('a line and a box', () => {
  const box = { center: at(5, 5), width: 4, height: 2 };

  it('cross if a part of the line is inside', () => {
    expect(crosses([at(0, 5), at(10, 5)], box)).toBe(true);
    expect(crosses([at(0, 0), at(5, 5)], box)).toBe(true);
    expect(crosses(corner, box)).toBe(false);
    expect(crosses([at(0, 0), at(2, 5)], box)).toBe(false);
  });

  it('do not cross if the line passes along a side or a corner', () => {
    expect(crosses([at(0, 4), at(10, 4)], box)).toBe(false);
    expect(crosses([at(3, 0), at(3, 10)], box)).toBe(false);
    expect(crosses([at(2, 5), at(4, 3)], box)).toBe(false);
  });
});

describe('the path of a line', () => {
  it('goes through all of its points', () => {
    expect(pathOf(corner)).toBe('M 0 0 L 10 0 L 10 10');
  });
});
