import { describe, expect, it } from 'vitest';
import { remove, rename } from './drawing';
import { star } from './fixtures';
import { group, groupsOf, hiddenIn, middleOf, setCollapsed, ungroup } from './groups';

describe('a group', () => {
  it('takes its nodes out of other groups, which disappear when they are empty', () => {
    const first = group(star(), ['device-1', 'device-2']);
    const second = group(first, ['device-1', 'device-2', 'device-3']);
    expect(second.layout.groups).toEqual([
      { name: 'Group 1', members: ['device-1', 'device-2', 'device-3'], collapsed: false },
    ]);
    expect(
      group(first, ['device-2', 'switch-1']).layout.groups.map((each) => [each.name, each.members]),
    ).toEqual([
      ['Group 1', ['device-1']],
      ['Group 2', ['device-2', 'switch-1']],
    ]);
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
