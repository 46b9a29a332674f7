import { describe, expect, it } from 'vitest';
import { borderPoint } from './border';

const box = { center: { x: 100, y: 50 }, width: 80, height: 40 };

describe('the border of a node', () => {
  it('is left at the side that faces the other end', () => {
    expect(borderPoint(box, { x: 500, y: 50 })).toEqual({ x: 140, y: 50 });
    expect(borderPoint(box, { x: 100, y: -300 })).toEqual({ x: 100, y: 30 });
  });

  it('is left at a corner on the diagonal', () => {
    expect(borderPoint(box, { x: 180, y: 90 })).toEqual({ x: 140, y: 70 });
  });

  it('is nowhere when both middles coincide', () => {
    expect(borderPoint(box, { x: 100, y: 50 })).toEqual({ x: 100, y: 50 });
  });
});
