import { describe, expect, it } from 'vitest';
import { align, distribute } from './alignment';
import { type Drawing, move } from './drawing';
import { star } from './fixtures';

/** device-1 at (0, 0), device-2 at (210, 40), device-3 at (600, 80), all 184 × 76; the switch is 112 × 40. */
const drawing = (): Drawing =>
  move(star(), {
    'device-1': { x: 0, y: 0 },
    'device-2': { x: 210, y: 40 },
    'device-3': { x: 600, y: 80 },
    'switch-1': { x: 300, y: 300 },
  });
const at = ({ layout }: Drawing, name: string) => layout.positions[name];

describe('aligning', () => {
  it('puts left edges on the leftmost one, whatever the widths', () => {
    const next = align(drawing(), ['device-2', 'switch-1'], 'left');
    // The left edge of device-2 is 210 − 92 = 118, so the middle of the switch is 118 + 56.
    expect(at(next, 'switch-1')).toEqual({ x: 174, y: 300 });
    expect(at(next, 'device-2')).toEqual({ x: 210, y: 40 });
  });

  it('puts right edges, tops and bottoms on the outermost one', () => {
    expect(at(align(drawing(), ['device-1', 'device-3'], 'right'), 'device-1')).toEqual({ x: 600, y: 0 });
    expect(at(align(drawing(), ['device-1', 'switch-1'], 'top'), 'switch-1')).toEqual({ x: 300, y: -18 });
    expect(at(align(drawing(), ['device-1', 'device-3'], 'bottom'), 'device-1')).toEqual({ x: 0, y: 80 });
  });

  it('puts middles on their mean', () => {
    const next = align(drawing(), ['device-1', 'device-2', 'device-3'], 'middle');
    expect(['device-1', 'device-2', 'device-3'].map((name) => at(next, name)?.y)).toEqual([40, 40, 40]);
    expect(at(align(drawing(), ['device-1', 'device-3'], 'centre'), 'device-1')).toEqual({ x: 300, y: 0 });
  });

  it('leaves a single node alone', () => {
    const before = drawing();
    expect(align(before, ['device-1'], 'left')).toBe(before);
    expect(distribute(before, ['device-1', 'device-2'], 'x')).toBe(before);
  });
});

describe('distributing', () => {
  it('makes the gaps equal and leaves the outermost two', () => {
    const next = distribute(drawing(), ['device-3', 'device-1', 'device-2'], 'x');
    // From 92 to 508 is room for one card of 184 and two gaps of 116: its middle is 92 + 116 + 92.
    expect(at(next, 'device-2')).toEqual({ x: 300, y: 40 });
    expect([at(next, 'device-1')?.x, at(next, 'device-3')?.x]).toEqual([0, 600]);
  });
});
