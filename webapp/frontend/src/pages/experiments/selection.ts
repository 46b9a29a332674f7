/** Selected points, by digest. */
import { useState } from 'react';

export interface Selection {
  digests: ReadonlySet<string>;
  select: (digests: readonly string[], how: 'toggle' | 'add') => void;
  set: (digests: readonly string[]) => void;
}

export function useSelection(): Selection {
  const [digests, setDigests] = useState<ReadonlySet<string>>(new Set());
  return {
    digests,
    select: (some, how) => setDigests((old) => changed(old, some, how)),
    set: (some) => setDigests(new Set(some)),
  };
}

/** Toggling a cell of several points deselects it only if all of them are selected. */
function changed(
  old: ReadonlySet<string>,
  some: readonly string[],
  how: 'toggle' | 'add',
): ReadonlySet<string> {
  const next = new Set(old);
  const remove = how === 'toggle' && some.every((digest) => old.has(digest));
  for (const digest of some) {
    if (remove) next.delete(digest);
    else next.add(digest);
  }
  return next;
}
