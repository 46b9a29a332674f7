/** How groups lie in each other: two have no node in common, or one has all nodes of the other. */
import type { CanvasLayout } from '@/api/types';

export type Group = CanvasLayout['groups'][number];

/** Groups without those that have no node, or the same nodes as one before them. */
export function distinct(groups: readonly Group[]): Group[] {
  return groups.filter(
    (each, index) =>
      each.members.length > 0 &&
      !groups.slice(0, index).some((other) => isWithin(each, other.members) && hasAll(each, other.members)),
  );
}

/** Whether a group has all of these nodes. */
export const hasAll = (each: Group, names: readonly string[]) =>
  names.every((name) => each.members.includes(name));
/** Whether a group has no nodes but these. */
export const isWithin = (each: Group, names: readonly string[]) =>
  each.members.every((name) => names.includes(name));
/** Whether one group has all nodes of another, and more. */
export const isAround = (outer: Group, inner: Group) =>
  hasAll(outer, inner.members) && !isWithin(outer, inner.members);
