/** Shares of an axis from the bounds between them. */

/** Member i of `group` has [bounds[i], bounds[i + 1]): [rank, start, stop] of those whose share is not empty. */
export function sharesOf(group: readonly number[], bounds: readonly number[]): [number, number, number][] {
  return group.flatMap((rank, at): [number, number, number][] => {
    const [start, stop] = [bounds[at] ?? 0, bounds[at + 1] ?? 0];
    return stop > start ? [[rank, start, stop]] : [];
  });
}
