import { describe, expect, it } from 'vitest';
import { autoLayout } from './autoLayout';
import { addDevice, addSwitch, connect, type Drawing, emptyDrawing } from './drawing';
import { board } from './fixtures';
import { shapeLayout } from './shapes';

function nodes(count: number, hub: boolean): Drawing {
  let drawing = hub ? addSwitch(emptyDrawing('shape'), { x: 0, y: 0 }).drawing : emptyDrawing('shape');
  for (let number = 0; number < count; number += 1) ({ drawing } = addDevice(drawing, board, { x: 0, y: 0 }));
  return drawing;
}

const star = (count: number) => {
  let drawing = nodes(count, true);
  for (let number = 1; number <= count; number += 1)
    drawing = connect(drawing, `device-${number}`, 'switch-1');
  return drawing;
};

describe('tidying up', () => {
  it.each([3, 8, 24])(
    'keeps a star of %i devices a star: all around the middle, none over another',
    (count) => {
      const places = autoLayout(star(count).spec);
      expect(places['switch-1']).toEqual({ x: 0, y: 0 });
      const around = Object.entries(places).filter(([name]) => name !== 'switch-1');
      const distances = around.map(([, { x, y }]) => Math.hypot(x, y / 0.62));
      expect(Math.max(...distances) - Math.min(...distances)).toBeLessThan(2);
      for (const [index, [, one]] of around.entries())
        for (const [, other] of around.slice(index + 1))
          expect(Math.abs(one.x - other.x) >= 184 || Math.abs(one.y - other.y) >= 76).toBe(true);
    },
  );

  it('keeps a ring a ring: neighbours on the circle are linked', () => {
    let drawing = nodes(6, false);
    const order = [1, 4, 2, 6, 3, 5];
    order.forEach((from, index) => {
      drawing = connect(drawing, `device-${from}`, `device-${order[(index + 1) % 6]}`);
    });
    const places = shapeLayout(drawing.spec)!;
    const angle = (number: number) => {
      const { x, y } = places[`device-${number}`]!;
      return Math.atan2(y / 0.62, x);
    };
    const steps = order.map((number, index) => {
      const step = Math.abs(angle(order[(index + 1) % 6]!) - angle(number));
      return Math.min(step, 2 * Math.PI - step);
    });
    for (const step of steps) expect(step).toBeCloseTo(Math.PI / 3, 1);
  });

  it('knows a star with parallel links, and no shape in a mesh or in separate parts', () => {
    expect(shapeLayout(connect(star(3), 'device-1', 'switch-1').spec)).not.toBeNull();
    expect(shapeLayout(connect(star(4), 'device-1', 'device-2').spec)).toBeNull();
    expect(shapeLayout(nodes(4, false).spec)).toBeNull();
  });

  it('puts nodes without links in rows below the others, which keep their shape', () => {
    let apart = star(3);
    for (let number = 0; number < 3; number += 1) apart = addDevice(apart, board, { x: 0, y: 0 }).drawing;
    const { 'device-4': four, 'device-5': five, 'device-6': six, ...rest } = autoLayout(apart.spec);
    expect(rest).toEqual(autoLayout(star(3).spec));
    const lowest = Math.max(...Object.values(rest).map(({ y }) => y));
    expect([four!.y, five!.y, six!.y]).toEqual([lowest + 136, lowest + 136, lowest + 272]);
    expect([five!.x - four!.x, six!.x - four!.x]).toEqual([264, 0]);
    const alone = Object.values(autoLayout(nodes(30, false).spec));
    expect(Math.max(...alone.map(({ x }) => x))).toBe(5 * 264);
    expect(Math.max(...alone.map(({ y }) => y))).toBe(4 * 136);
  });
});
