import { describe, expect, it } from 'vitest';
import { type Drawing, remove, rename } from './drawing';
import { star } from './fixtures';
import { cardsIn, chosenIn, group, groupsOf, hiddenIn, middleOf, setCollapsed, ungroup } from './groups';

const membersIn = (drawing: Drawing) =>
  Object.fromEntries(drawing.layout.groups.map(({ name, members }) => [name, members]));

describe('a group', () => {
  it('takes its nodes out of groups that have other nodes too', () => {
    const first = group(star(), ['device-1', 'device-2']);
    expect(membersIn(group(first, ['device-2', 'switch-1']))).toEqual({
      'Group 1': ['device-1'],
      'Group 2': ['device-2', 'switch-1'],
    });
  });

  it('needs two nodes', () => {
    expect(group(star(), ['device-1']).layout.groups).toEqual([]);
  });

  it('hides its nodes while it is collapsed, and stands in their middle', () => {
    const drawing = setCollapsed(group(star(), ['device-1', 'device-3']), ['device-3'], true);
    expect([...hiddenIn(drawing.layout)]).toEqual([
      ['device-1', 'group:0'],
      ['device-3', 'group:0'],
    ]);
    expect(middleOf(drawing, ['device-1', 'device-3'])).toEqual({ x: 200, y: 0 });
    expect(hiddenIn(setCollapsed(drawing, ['device-1'], false).layout).size).toBe(0);
  });

  it('follows new names, loses removed nodes, and can be dissolved', () => {
    const drawing = group(star(), ['device-1', 'device-2']);
    expect(rename(drawing, 'device-1', 'desk').layout.groups[0]?.members).toEqual(['desk', 'device-2']);
    expect(remove(drawing, ['device-1'], []).layout.groups[0]?.members).toEqual(['device-2']);
    expect(remove(drawing, ['device-1', 'device-2'], []).layout.groups).toEqual([]);
    expect(groupsOf(drawing.layout, ['device-2'])).toHaveLength(1);
    expect(ungroup(drawing, ['device-2']).layout.groups).toEqual([]);
    expect(ungroup(drawing, ['switch-1'])).toBe(drawing);
  });
});

describe('a group in a group', () => {
  const inner = group(star(), ['device-1', 'device-2']);
  const nested = group(inner, ['device-1', 'device-2', 'device-3']);

  it('stays when the other is made around it, or inside of it', () => {
    const both = {
      'Group 1': ['device-1', 'device-2'],
      'Group 2': ['device-1', 'device-2', 'device-3'],
    };
    expect(membersIn(nested)).toEqual(both);
    const inside = group(group(star(), ['device-1', 'device-2', 'device-3']), ['device-1', 'device-2']);
    expect(membersIn(inside)).toEqual({ 'Group 1': both['Group 2'], 'Group 2': both['Group 1'] });
    expect(group(nested, ['device-2', 'device-1'])).toBe(nested);
  });

  it('is chosen by one of its nodes, the one around it by all of its own', () => {
    const chosen = (...names: string[]) => chosenIn(nested.layout, names).map(({ name }) => name);
    expect(chosen('device-1')).toEqual(['Group 1']);
    expect(chosen('device-3')).toEqual(['Group 2']);
    expect(chosen('device-1', 'device-2', 'device-3')).toEqual(['Group 2']);
    expect(membersIn(ungroup(nested, ['device-1']))).toEqual({
      'Group 2': ['device-1', 'device-2', 'device-3'],
    });
  });

  it('is hidden with the collapsed one around it, and shown as it was afterwards', () => {
    const whole = ['device-1', 'device-2', 'device-3'];
    const small = setCollapsed(nested, ['device-1'], true);
    expect(cardsIn(small.layout).map(({ id }) => id)).toEqual(['group:0']);
    const both = setCollapsed(small, whole, true);
    expect([...hiddenIn(both.layout).values()]).toEqual(['group:1', 'group:1', 'group:1']);
    expect(cardsIn(both.layout).map(({ id }) => id)).toEqual(['group:1']);
    expect(setCollapsed(both, whole, false).layout).toEqual(small.layout);
  });

  it('is one group with the other when both have the same nodes left', () => {
    expect(membersIn(remove(nested, ['device-3'], []))).toEqual({ 'Group 1': ['device-1', 'device-2'] });
  });
});
