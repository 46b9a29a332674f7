import { describe, expect, it } from 'vitest';
import type { ClusterSpec } from '@/api/types';
import { cluster as pair, device } from '@/run/data/fixtures';
import { fitted, spotsIn } from './positions';

const names = ['a', 'b', 'c', 'd', 'e'];
const star: ClusterSpec = {
  ...pair,
  devices: names.map(device),
  switches: [{ name: 'hub' }],
  links: names.map((name) => ({ ...pair.links[0]!, a: name, b: 'hub' })),
};
const inALine = Object.fromEntries([
  ...names.map((name, at) => [name, { x: at * 230, y: 0 }] as const),
  ['hub', { x: 460, y: 180 }] as const,
]);

describe('fitted', () => {
  it('leaves positions alone that fit', () => {
    expect(fitted(star, inALine, { width: 1200, height: 400 })).toBe(inALine);
  });

  it('pushes them together as long as no cards touch', () => {
    const found = fitted(star, inALine, { width: 5 * 170, height: 400 });
    expect(found['e']!.x + 158).toBeCloseTo(850);
    expect(found['a']).toEqual({ x: 0, y: 0 });
  });

  it('puts the devices of a switch in rows above and below it, all within the width', () => {
    const found = fitted(star, inALine, { width: 600, height: 400 });
    expect(Math.max(...names.map((name) => found[name]!.x)) + 158).toBeLessThanOrEqual(600);
    const heights = names.map((name) => found[name]!.y);
    const columns = ['a', 'b', 'c'].map((name) => found[name]!.x);
    expect(found['hub']!.x).toBeCloseTo((Math.min(...columns) + Math.max(...columns)) / 2);
    expect(heights.filter((y) => y < found['hub']!.y)).toHaveLength(3);
    expect(heights.filter((y) => y > found['hub']!.y)).toHaveLength(2);
  });

  it('keeps a shape that does not fit and has no single switch', () => {
    const close = { a: { x: 0, y: 0 }, b: { x: 300, y: 0 } };
    expect(fitted(pair, close, { width: 200, height: 100 })).toBe(close);
  });
});

describe('spotsIn', () => {
  it('draws parallel links beside each other, with labels that do not cover each other', () => {
    const links = [pair.links[0]!, { ...pair.links[0]!, a: 'b', b: 'a', parallel: 2 }];
    const spots = spotsIn({ ...pair, links }, { a: { x: 0, y: 0 }, b: { x: 500, y: 0 } });
    expect([...spots.keys()]).toEqual(['a--b', 'b--a--2']);
    const [one, other] = [...spots.values()];
    expect([one!.lane, other!.lane]).toEqual([-0.5, 0.5]);
    // The lanes are 20 apart, less than the height of a label.
    expect([other!.along, other!.aside]).not.toEqual([one!.along, one!.aside]);
  });
});
