/** The run at the instant that the page shows: its newest state, or its state at an earlier time. */
import { useMemo, useSyncExternalStore } from 'react';
import type { RunData } from '@/run/data/runData';
import { snapshotAt, type Snapshot } from '@/run/data/snapshot';
import type { RunStore } from '@/run/feed/store';
import type { Viewport } from '@/run/timeline/viewport';

export interface Shown {
  /** Null for the present of a run that goes on, and for the end of one that is over. */
  instant_s: number | null;
  data: RunData;
  picture: Snapshot;
}

export function useShown(
  store: Pick<RunStore, 'data'>,
  newest: Snapshot,
  viewport: Viewport,
  dilation: number,
): Shown {
  const instant_s = useSyncExternalStore(viewport.subscribe, () => viewport.instant_s);
  return useMemo(() => {
    if (instant_s === null) return { instant_s, data: store.data, picture: newest };
    const then = store.data.at(instant_s);
    // The newest state's version grows with every event: that of an instant must differ from all of them.
    const version = newest.version + instant_s;
    return { instant_s, data: then, picture: snapshotAt(then, store.data, version, dilation) };
  }, [store, newest, instant_s, dilation]);
}
