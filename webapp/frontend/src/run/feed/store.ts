/** A watched run: its data, its feed, and a snapshot for React four times per second. */
import { useEffect, useState, useSyncExternalStore } from 'react';

import { isOver, type RunEvent, type RunSpec } from '@/api/types';
import { RunData } from '@/run/data/runData';
import { Feed, feedUrl } from './feed';
import { pastOf } from './past';
import { takeSnapshot, type Snapshot } from '@/run/data/snapshot';

const PICTURE_MS = 250;
/** While events of the past come in, pictures would delay them. */
const PICTURE_OF_PAST_MS = 1_000;

export class RunStore {
  readonly data: RunData;
  readonly feed: Feed;
  private picture: Snapshot;
  private taken = '';
  private taken_ms = performance.now();
  private timer: ReturnType<typeof setInterval> | undefined;
  private readonly listeners = new Set<() => void>();

  constructor(
    id: number,
    { cluster, model, workload }: RunSpec,
    private readonly dilation: number,
  ) {
    this.data = new RunData(cluster, model);
    this.data.service.serves = workload.pattern === 'serve';
    this.feed = new Feed({
      url: feedUrl(id),
      past: (since, signal) => pastOf(id, since, signal),
      onEvents: (events, now_ms) => this.take(events, now_ms),
      onChange: () => this.refresh(),
      isComplete: () => this.data.report !== null && isOver(this.data.state),
    });
    this.picture = takeSnapshot(this.data, 0, dilation);
  }

  start(): void {
    this.feed.start();
    this.timer = setInterval(() => this.tick(), PICTURE_MS);
  }

  stop(): void {
    this.feed.stop();
    clearInterval(this.timer);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): Snapshot => this.picture;

  /** What answers a person's change is shown at once. */
  private take(events: Iterable<RunEvent>, now_ms: number): void {
    const answers = () => this.data.injections.length + this.data.refusals;
    const before = answers();
    this.data.apply(events, now_ms);
    if (this.feed.state === 'live' && answers() > before) this.refresh();
  }

  private tick(): void {
    const waits = this.feed.state === 'catching up' && performance.now() - this.taken_ms < PICTURE_OF_PAST_MS;
    if (!waits) this.refresh();
  }

  private refresh(): void {
    const now = `${this.data.events} ${this.feed.state}`;
    if (now === this.taken) return;
    this.taken = now;
    this.taken_ms = performance.now();
    this.picture = takeSnapshot(
      this.data,
      this.picture.version + 1,
      this.data.report?.dilation ?? this.dilation,
    );
    for (const listener of this.listeners) listener();
  }
}

/** Watches run `id` while the component is mounted. Key the component by the id. */
export function useRunStore(id: number, spec: RunSpec, dilation: number): RunStore {
  const [store] = useState(() => new RunStore(id, spec, dilation));
  useEffect(() => {
    store.start();
    return () => store.stop();
  }, [store]);
  return store;
}

export function useSnapshot(store: RunStore): Snapshot {
  return useSyncExternalStore(store.subscribe, store.snapshot);
}
