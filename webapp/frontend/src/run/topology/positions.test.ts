import { describe, expect, it } from 'vitest';
import type { ClusterSpec } from '@/api/types';
import { cluster as pair, device } from '@/run/data/fixtures';
import { arranged, type Arrangement, drawingOf } from './positions';

const LINK = pair.links[0]!;
const NONE = { bends: {} };

/** Devices a, b, … around one switch. */
const star = (count: number) => starOf([...'abcdefghijklm'].slice(0, count));

function starOf(names: readonly string[]): ClusterSpec {
  return {
    ...pair,
    devices: names.map(device),
    switches: [{ name: 'hub' }],
    links: names.map((name) => ({ ...LINK, a: name, b: 'hub' })),
  };
}

const inALine = {
  ...NONE,
  positions: Object.fromEntries([
    ...[...'abcde'].map((name, at) => [name, { x: at * 230, y: 0 }] as const),
    ['hub', { x: 460, y: 180 }] as const,
  ]),
};

/** How wide and high the middles of cards are apart. */
function extent({ positions }: Pick<Arrangement, 'positions'>): [number, number] {
  const [xs, ys] = [Object.values(positions).map(({ x }) => x), Object.values(positions).map(({ y }) => y)];
  return [Math.max(...xs) - Math.min(...xs), Math.max(...ys) - Math.min(...ys)];
}

describe('arranged', () => {
  it('leaves a drawing alone that fits', () => {
    const found = arranged(star(5), inALine, { width: 1200, height: 400 });
    expect(found.positions).toBe(inALine.positions);
    expect(found.cards).toBe('full');
  });

  it('pushes it together, with its bends, as long as no cards touch', () => {
    const drawn = {
      positions: { a: { x: 0, y: 0 }, b: { x: 1000, y: 0 } },
      bends: { 'a--b': [{ x: 500, y: 200 }] },
    };
    const found = arranged(pair, drawn, { width: 658, height: 162 });
    expect(found.positions).toEqual({ a: { x: 0, y: 0 }, b: { x: 500, y: 0 } });
    expect(found.bends).toEqual({ 'a--b': [{ x: 250, y: 100 }] });
  });

  it('makes cards compact where whole ones touch', () => {
    const drawn = { ...NONE, positions: { a: { x: 0, y: 0 }, b: { x: 0, y: 300 } } };
    const found = arranged(pair, drawn, { width: 200, height: 110 });
    expect([found.cards, extent(found)]).toEqual(['compact', [0, 78]]);
  });

  it('makes rows columns where the panel is wide and low', () => {
    const drawn = { ...NONE, positions: { a: { x: 0, y: 0 }, b: { x: 0, y: 300 } } };
    const found = arranged(pair, drawn, { width: 600, height: 62 });
    expect(found.positions).toEqual({ a: { x: 0, y: 0 }, b: { x: 300, y: 0 } });
  });

  it('puts the devices of a switch in rows above and below it where the drawing cannot be pushed together', () => {
    const found = arranged(star(5), inALine, { width: 600, height: 260 });
    const heights = [...'abcde'].map((name) => found.positions[name]!.y);
    const hub = found.positions['hub']!;
    expect(heights.filter((y) => y < hub.y)).toHaveLength(3);
    expect(heights.filter((y) => y > hub.y)).toHaveLength(2);
    expect(extent(found)[0]).toBeLessThanOrEqual(600 - 158);
  });

  it('shows every card of a switch with twelve devices in the low panel of a small window', () => {
    const cluster = star(12);
    const room = { width: 594, height: 224 };
    const found = arranged(cluster, drawingOf(cluster), room);
    const [width, height] = extent(found);
    expect(found.cards).toBe('compact');
    expect([width <= room.width - 148, height <= room.height - 32]).toEqual([true, true]);
  });

  it('shows all of 65 devices around a switch as tiles, of which none touch', () => {
    const names = ['host', ...Array.from({ length: 64 }, (_, at) => `chip-${at}`)];
    const cluster = starOf(names);
    const room = { width: 594, height: 224 };
    const found = arranged(cluster, drawingOf(cluster), room);
    const [width, height] = extent(found);
    expect(found.cards).toBe('tile');
    expect([width <= room.width - 40, height <= room.height - 20]).toEqual([true, true]);
    const middles = [...names, 'hub'].map((name) => found.positions[name]!);
    for (const [at, one] of middles.entries())
      for (const other of middles.slice(at + 1))
        expect(Math.abs(one.x - other.x) >= 44 || Math.abs(one.y - other.y) >= 24).toBe(true);
  });

  it('takes rows of compact cards where those of whole ones are higher than the panel', () => {
    const found = arranged(star(5), inALine, { width: 600, height: 130 });
    expect([found.cards, extent(found)[1]]).toEqual(['compact', 130 - 32]);
  });

  it('keeps a shape without a single switch that does not fit', () => {
    const close = { ...NONE, positions: { a: { x: 0, y: 0 }, b: { x: 10, y: 5 } } };
    const found = arranged(pair, close, { width: 100, height: 20 });
    expect(found.positions).toBe(close.positions);
  });

  it('draws parallel links beside each other, with labels that do not cover each other', () => {
    const links = [LINK, { ...LINK, a: 'b', b: 'a', parallel: 2 }];
    const drawn = { ...NONE, positions: { a: { x: 0, y: 0 }, b: { x: 500, y: 0 } } };
    const { spots } = arranged({ ...pair, links }, drawn, { width: 700, height: 100 });
    expect([...spots.keys()]).toEqual(['a--b', 'b--a--2']);
    const [one, other] = [...spots.values()];
    expect([one!.lane, other!.lane]).toEqual([-0.5, 0.5]);
    // The lanes are 20 apart, less than the height of a label.
    expect([other!.along, other!.aside]).not.toEqual([one!.along, one!.aside]);
  });

  it('makes a label a dot that would cover a card', () => {
    const drawn = { ...NONE, positions: { a: { x: 0, y: 0 }, b: { x: 175, y: 0 } } };
    expect(arranged(pair, drawn, { width: 340, height: 62 }).spots.get('a--b')).toMatchObject({
      small: true,
      aside: 0,
    });
  });
});

describe('drawingOf', () => {
  it('is the drawing only if it has every node', () => {
    expect(drawingOf(star(5), inALine)).toEqual(inALine);
    const some = { ...inALine, positions: { a: { x: 0, y: 0 } } };
    expect(Object.keys(drawingOf(star(5), some).positions)).toEqual(['a', 'b', 'c', 'd', 'e', 'hub']);
  });

  it('leaves out nodes and links that are not in the cluster: they would push the others together', () => {
    const away = { x: 3000, y: 0 };
    const more = {
      positions: { ...inALine.positions, away },
      bends: { ...inALine.bends, 'a--away': [away] },
    };
    expect(drawingOf(star(5), more)).toEqual(inALine);
  });
});
