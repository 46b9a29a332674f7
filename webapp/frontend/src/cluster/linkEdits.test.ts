import { describe, expect, it } from 'vitest';
import { connect, type Drawing, linkName, setDisabled, updateLinks } from './drawing';
import { star } from './fixtures';
import {
  addBend,
  carries,
  isAsymmetric,
  moveBend,
  removeBend,
  setAsymmetric,
  setDirected,
  straighten,
  valueOf,
} from './linkEdits';

const [ONE, TWO, THREE] = ['device-1--switch-1', 'device-2--switch-1', 'device-3--switch-1'] as const;
const link = (drawing: Drawing, name: string) => drawing.spec.links.find((each) => linkName(each) === name)!;

describe('a field of both directions', () => {
  it('replaces the values of both, also of a link whose directions differed', () => {
    const before = updateLinks(star(), [ONE], { bit_per_s: 3e6, reverse_bit_per_s: 5e6 });
    const after = setDirected(before, [ONE, TWO], 'bit_per_s', 'both', 7e6);
    for (const name of [ONE, TWO])
      for (const direction of ['forward', 'backward'] as const)
        expect(valueOf(link(after, name), 'bit_per_s', direction)).toBe(7e6);
    expect(link(after, THREE)).toBe(link(before, THREE));
  });
});

describe('a field of one direction', () => {
  it('keeps the value of the other', () => {
    const before = updateLinks(star(), [ONE], { delay_s: 0.001, reverse_delay_s: null });
    const there = link(setDirected(before, [ONE], 'delay_s', 'forward', 0.02), ONE);
    expect([there.delay_s, there.reverse_delay_s]).toEqual([0.02, 0.001]);
    const back = link(setDirected(before, [ONE], 'delay_s', 'backward', 0.03), ONE);
    expect([back.delay_s, back.reverse_delay_s]).toEqual([0.001, 0.03]);
  });

  it('starts from the present values when directions may differ, and ends with those of the way there', () => {
    const lossy = updateLinks(star(), [ONE], { loss_frac: 0.1, reverse_loss_frac: 0.2 });
    const on = setAsymmetric(lossy, [ONE, TWO], true);
    expect(link(on, ONE)).toMatchObject({ loss_frac: 0.1, reverse_loss_frac: 0.2, reverse_delay_s: 0.2e-3 });
    expect(isAsymmetric(link(on, TWO))).toBe(true);
    expect(isAsymmetric(link(setAsymmetric(on, [ONE], false), ONE))).toBe(false);
  });
});

describe('parallel links', () => {
  it('carry what the fastest in each direction carries, of equal ones the first', () => {
    let drawing = connect(connect(star(), 'switch-1', 'device-1'), 'device-1', 'switch-1');
    drawing = updateLinks(drawing, [ONE], { bit_per_s: 1e6, reverse_bit_per_s: 9e9 });
    const [second, third] = ['switch-1--device-1--2', 'device-1--switch-1--3'] as const;
    expect(carries(drawing, link(drawing, ONE))).toEqual({ forward: false, backward: true });
    expect(carries(drawing, link(drawing, second))).toEqual({ forward: false, backward: true });
    expect(carries(drawing, link(drawing, third))).toEqual({ forward: false, backward: false });
    const off = setDisabled(drawing, [second], true);
    expect(carries(off, link(off, third))).toEqual({ forward: true, backward: false });
    expect(carries(off, link(off, second))).toEqual({ forward: false, backward: false });
  });
});

describe('bends', () => {
  it('are added where the line passes nearest, moved, and removed', () => {
    // device-1 is at (0, 0), the switch at (200, 200).
    let drawing = addBend(star(), ONE, { x: 150, y: 140.4 });
    drawing = addBend(drawing, ONE, { x: 20, y: 40 });
    expect(drawing.layout.bends[ONE]).toEqual([
      { x: 20, y: 40 },
      { x: 150, y: 140 },
    ]);
    expect(moveBend(drawing, ONE, 0, { x: 1, y: 2 }).layout.bends[ONE]?.[0]).toEqual({ x: 1, y: 2 });
    expect(removeBend(drawing, ONE, 0).layout.bends[ONE]).toEqual([{ x: 150, y: 140 }]);
    expect(removeBend(removeBend(drawing, ONE, 0), ONE, 0).layout.bends).toEqual({});
    expect(straighten(drawing, [ONE]).layout.bends).toEqual({});
    expect(straighten(drawing, [TWO])).toBe(drawing);
  });

  it('are twenty at most', () => {
    let drawing = star();
    for (let number = 0; number < 25; number += 1) drawing = addBend(drawing, ONE, { x: number, y: 0 });
    expect(drawing.layout.bends[ONE]).toHaveLength(20);
  });
});
