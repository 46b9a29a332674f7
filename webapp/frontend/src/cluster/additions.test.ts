import { describe, expect, it } from 'vitest';
import { addAround } from './additions';
import { addSwitch, emptyDrawing } from './drawing';

describe('several nodes added at once', () => {
  it('stand in rows of three from the middle, none on another', () => {
    const { drawing, names } = addAround(emptyDrawing('new'), { x: 100, y: 50 }, 4, addSwitch);
    expect(names).toEqual(['switch-1', 'switch-2', 'switch-3', 'switch-4']);
    expect(names.map((name) => drawing.layout.positions[name])).toEqual([
      { x: 100, y: 50 },
      { x: -220, y: 50 },
      { x: 420, y: 50 },
      { x: 100, y: 186 },
    ]);
  });

  it('leave out a spot where a node is', () => {
    const there = addSwitch(emptyDrawing('new'), { x: 90, y: 40 }).drawing;
    const { drawing } = addAround(there, { x: 100, y: 50 }, 1, addSwitch);
    expect(drawing.layout.positions['switch-2']).toEqual({ x: -220, y: 50 });
  });
});
