/** Groups of nodes that are drawn together: two have no node in common, or one has all nodes of the other. */
import type { CanvasLayout, LinkSpec } from '@/api/types';
import { type Point, positionsOf } from './autoLayout';
import type { Drawing } from './drawing';
import { distinct, type Group, hasAll, isAround, isWithin } from './nesting';

/** Whether these nodes can become a group: they are several, and no group has just them. */
export function canGroup(layout: CanvasLayout, names: readonly string[]): boolean {
  return names.length > 1 && !layout.groups.some((each) => hasAll(each, names) && isWithin(each, names));
}

/**
 * Makes a group of these nodes. It is inside of groups that have all of them, and around groups that have no others;
 * the nodes leave the groups that have some of them and also others.
 */
export function group(drawing: Drawing, names: readonly string[]): Drawing {
  const { layout } = drawing;
  if (!canGroup(layout, names)) return drawing;
  const rest = layout.groups.map((each) =>
    hasAll(each, names) || isWithin(each, names)
      ? each
      : { ...each, members: each.members.filter((name) => !names.includes(name)) },
  );
  return withGroups(drawing, [
    ...distinct(rest),
    { name: freeTitle(rest), members: [...names], collapsed: false },
  ]);
}

/** Dissolves the groups that `chosenIn` finds. */
export function ungroup(drawing: Drawing, names: readonly string[]): Drawing {
  const chosen = chosenIn(drawing.layout, names);
  if (chosen.length === 0) return drawing;
  return withGroups(
    drawing,
    drawing.layout.groups.filter((each) => !chosen.includes(each)),
  );
}

/** Shows each group that `chosenIn` finds as one card, or its nodes again. */
export function setCollapsed(drawing: Drawing, names: readonly string[], collapsed: boolean): Drawing {
  const chosen = chosenIn(drawing.layout, names);
  return withGroups(
    drawing,
    drawing.layout.groups.map((each) => (chosen.includes(each) ? { ...each, collapsed } : each)),
  );
}

/** The groups that a choice of nodes means: the largest without other nodes, else the smallest around each node. */
export function chosenIn(layout: CanvasLayout, names: readonly string[]): Group[] {
  const whole = layout.groups.filter((each) => isWithin(each, names));
  if (whole.length > 0) return whole.filter((each) => !whole.some((other) => isAround(other, each)));
  const around = groupsOf(layout, names);
  return around.filter((each) => !around.some((other) => isAround(each, other)));
}

export function renameGroup(drawing: Drawing, index: number, name: string): Drawing {
  const rename = (each: Group, at: number) => (at === index ? { ...each, name } : each);
  return withGroups(drawing, drawing.layout.groups.map(rename));
}

/** The groups that have at least one of these nodes. */
export function groupsOf(layout: CanvasLayout, names: readonly string[]): Group[] {
  return layout.groups.filter((each) => each.members.some((name) => names.includes(name)));
}

/** Name on the canvas of the group at this place of the list: no node can have a colon in its name. */
export const groupId = (index: number) => `group:${index}`;

/** Node → name on the canvas of the largest collapsed group that it is in; nodes that are shown are left out. */
export function hiddenIn(layout: CanvasLayout): Map<string, string> {
  const hidden = new Map<string, string>();
  const collapsed = layout.groups.map((each, index) => ({ ...each, index })).filter((each) => each.collapsed);
  for (const { members, index } of collapsed.toSorted((a, b) => a.members.length - b.members.length))
    for (const name of members) hidden.set(name, groupId(index));
  return hidden;
}

/** The collapsed groups that are not inside of another one, with their names on the canvas. */
export function cardsIn(layout: CanvasLayout): { id: string; group: Group }[] {
  const hidden = hiddenIn(layout);
  return layout.groups.flatMap((each, index) =>
    each.collapsed && hidden.get(each.members[0]!) === groupId(index)
      ? [{ id: groupId(index), group: each }]
      : [],
  );
}

/** The middle of a group's nodes: where its card is. */
export function middleOf({ spec, layout }: Drawing, members: readonly string[]): Point {
  const at = positionsOf(spec, layout);
  const places = members.flatMap((name) => at[name] ?? []);
  const mean = (axis: 'x' | 'y') =>
    Math.round(places.reduce((sum, place) => sum + place[axis], 0) / Math.max(1, places.length));
  return { x: mean('x'), y: mean('y') };
}

/** The ends of a link on the canvas; null if both are in one collapsed group. */
export function shownEnds(link: LinkSpec, hidden: ReadonlyMap<string, string>): [string, string] | null {
  const [a, b] = [hidden.get(link.a) ?? link.a, hidden.get(link.b) ?? link.b];
  return a === b ? null : [a, b];
}

function freeTitle(groups: readonly Group[]): string {
  let number = groups.length + 1;
  while (groups.some((each) => each.name === `Group ${number}`)) number += 1;
  return `Group ${number}`;
}

function withGroups(drawing: Drawing, groups: Group[]): Drawing {
  return { ...drawing, layout: { ...drawing.layout, groups } };
}
