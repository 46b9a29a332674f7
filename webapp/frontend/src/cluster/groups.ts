/** Groups of nodes that are drawn together. A node is in one group at most. */
import type { CanvasLayout, LinkSpec } from '@/api/types';
import { type Point, positionsOf } from './autoLayout';
import type { Drawing } from './drawing';

export type Group = CanvasLayout['groups'][number];

/** Makes a group of these nodes; they leave the groups that they were in. */
export function group(drawing: Drawing, names: readonly string[]): Drawing {
  if (names.length < 2) return drawing;
  const rest = without(drawing.layout.groups, names);
  return withGroups(drawing, [...rest, { name: freeTitle(rest), members: [...names], collapsed: false }]);
}

/** Dissolves every group that has one of these nodes. */
export function ungroup(drawing: Drawing, names: readonly string[]): Drawing {
  const kept = drawing.layout.groups.filter((each) => !each.members.some((name) => names.includes(name)));
  return kept.length === drawing.layout.groups.length ? drawing : withGroups(drawing, kept);
}

/** Shows every group of these nodes as one card, or its nodes again. */
export function setCollapsed(drawing: Drawing, names: readonly string[], collapsed: boolean): Drawing {
  return withGroups(
    drawing,
    drawing.layout.groups.map((each) =>
      each.members.some((name) => names.includes(name)) ? { ...each, collapsed } : each,
    ),
  );
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

/** Node → name on the canvas of the collapsed group that it is in; nodes that are shown are left out. */
export function hiddenIn(layout: CanvasLayout): Map<string, string> {
  const hidden = new Map<string, string>();
  layout.groups.forEach((each, index) => {
    if (each.collapsed) for (const name of each.members) hidden.set(name, groupId(index));
  });
  return hidden;
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

function without(groups: readonly Group[], names: readonly string[]): Group[] {
  return groups
    .map((each) => ({ ...each, members: each.members.filter((name) => !names.includes(name)) }))
    .filter((each) => each.members.length > 0);
}

function freeTitle(groups: readonly Group[]): string {
  let number = groups.length + 1;
  while (groups.some((each) => each.name === `Group ${number}`)) number += 1;
  return `Group ${number}`;
}

function withGroups(drawing: Drawing, groups: Group[]): Drawing {
  return { ...drawing, layout: { ...drawing.layout, groups } };
}
