/** Which stretch of virtual time a timeline shows. One viewport may drive several canvases. */

export type Window = 1 | 10 | 'all';
const WIDEST_WINDOW_S = 10;

const MIN_SPAN_S = 1e-6;
/** What "all" is before there is anything. */
const EMPTY_SPAN_S = 1;

/** Of the stretch that is shown: a pixel of a wide screen. Following the run does not move by less. */
const UNSEEN = 1 / 2000;

const wholeSpan = (now_s: number) => (now_s > 0 ? Math.max(now_s, MIN_SPAN_S) : EMPTY_SPAN_S);

/** How many times as long as the run an axis reaches to either side. */
const BEYOND = 3;

/** From where a person began to mark to where they are: either may be the earlier. */
export interface Marked {
  from_s: number;
  to_s: number;
}

export class Viewport {
  start_s = 0;
  end_s = 1;
  /** Following keeps the right edge at "now"; any panning pauses it. */
  following: boolean;
  window: Window | null = 'all';
  /** Grows with every change; `touches` only when a person has done something. */
  version = 0;
  touches = 0;
  cursor_s: number | null = null;
  /** The instant that the page shows: null for the present or the end. */
  instant_s: number | null = null;
  /** The stretch that a person is marking. */
  marked: Marked | null = null;
  /** The present or the end of the run, as far as it was told. */
  private known_s = 0;
  private readonly listeners = new Set<() => void>();

  constructor(following: boolean) {
    this.following = following;
  }

  /** Follows the run; `now_s` is the present virtual time. */
  follow(now_s: number): void {
    this.known_s = Math.max(this.known_s, now_s);
    if (!this.following && this.window !== 'all') return;
    const width = this.window === 'all' ? wholeSpan(now_s) : this.end_s - this.start_s;
    const end = this.window === 'all' ? width : Math.max(now_s, width);
    const moved_s = Math.max(Math.abs(end - this.end_s), Math.abs(end - width - this.start_s));
    if (moved_s > UNSEEN * width) this.move(end - width, end);
  }

  show(window: Window, now_s: number): void {
    this.known_s = Math.max(this.known_s, now_s);
    this.window = window;
    const width = window === 'all' ? wholeSpan(now_s) : window;
    const end = this.following ? Math.max(now_s, width) : Math.max(this.end_s, width);
    this.move(window === 'all' ? 0 : end - width, window === 'all' ? width : end);
    this.notify();
  }

  pause(): void {
    if (!this.following) return;
    this.following = false;
    if (this.window === 'all') this.window = null;
    this.notify();
  }

  resume(now_s: number): void {
    this.following = true;
    this.window ??= 'all';
    this.follow(now_s);
    this.notify();
  }

  pan(by_s: number): void {
    this.window = null;
    this.following = false;
    this.move(this.start_s + by_s, this.end_s + by_s);
    this.notify();
  }

  /** Makes the stretch `factor` times as long, around "now" while following, else around `around_s`. */
  zoom(factor: number, around_s: number): void {
    const fixed = this.following ? this.end_s : around_s;
    const width = Math.max((this.end_s - this.start_s) * factor, MIN_SPAN_S);
    const left = (fixed - this.start_s) / (this.end_s - this.start_s);
    this.window = null;
    this.move(fixed - left * width, fixed - left * width + width);
    this.notify();
  }

  /** Marks a stretch, to be shown by `showMarked`; null for none. */
  mark(marked: Marked | null): void {
    this.marked = marked;
    this.version += 1;
    this.touches += 1;
  }

  /** Shows the marked stretch, and no longer follows the run. */
  showMarked(): void {
    if (!this.marked) return;
    const { from_s, to_s } = this.marked;
    const start_s = Math.min(from_s, to_s);
    this.marked = null;
    this.window = null;
    this.following = false;
    this.move(start_s, Math.max(from_s, to_s, start_s + MIN_SPAN_S));
    this.notify();
  }

  point(cursor_s: number | null): void {
    if (cursor_s === this.cursor_s) return;
    this.cursor_s = cursor_s;
    this.version += 1;
    this.touches += 1;
  }

  /** Shows the run as it was at an instant; null for the present. */
  showInstant(instant_s: number | null): void {
    this.instant_s = instant_s;
    this.notify();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Not further away from the run than it is long, a few times: runs that are aligned begin before 0. */
  private move(start_s: number, end_s: number): void {
    const reach_s = this.known_s > 0 ? Math.max(BEYOND * this.known_s, WIDEST_WINDOW_S) : Infinity;
    const width_s = Math.min(end_s - start_s, 2 * reach_s);
    this.start_s = Math.max(-reach_s, Math.min(start_s, reach_s - width_s));
    this.end_s = this.start_s + width_s;
    this.version += 1;
  }

  private notify(): void {
    this.version += 1;
    this.touches += 1;
    for (const listener of this.listeners) listener();
  }
}

/** `viewport` as a run sees it whose times are `by_s` later: what both show, or are told, is the same stretch. */
export function shifted(viewport: Viewport, by_s: number): Viewport {
  const later = (time_s: number | null) => (time_s === null ? null : time_s + by_s);
  const both = (marked: Marked | null, sign: 1 | -1) =>
    marked && { from_s: marked.from_s + sign * by_s, to_s: marked.to_s + sign * by_s };
  const earlier = (time_s: number | null) => (time_s === null ? null : time_s - by_s);
  return Object.create(viewport, {
    start_s: { get: () => viewport.start_s + by_s },
    end_s: { get: () => viewport.end_s + by_s },
    cursor_s: { get: () => later(viewport.cursor_s) },
    instant_s: { get: () => later(viewport.instant_s) },
    marked: { get: () => both(viewport.marked, 1) },
    version: { get: () => viewport.version },
    touches: { get: () => viewport.touches },
    following: { get: () => viewport.following },
    window: { get: () => viewport.window },
    follow: { value: (now_s: number) => viewport.follow(now_s) },
    show: { value: (window: Window, now_s: number) => viewport.show(window, now_s) },
    pause: { value: () => viewport.pause() },
    resume: { value: (now_s: number) => viewport.resume(now_s) },
    pan: { value: (pan_s: number) => viewport.pan(pan_s) },
    zoom: { value: (factor: number, around_s: number) => viewport.zoom(factor, around_s - by_s) },
    mark: { value: (marked: Marked | null) => viewport.mark(both(marked, -1)) },
    showMarked: { value: () => viewport.showMarked() },
    point: { value: (cursor_s: number | null) => viewport.point(earlier(cursor_s)) },
    showInstant: { value: (instant_s: number | null) => viewport.showInstant(earlier(instant_s)) },
  }) as Viewport;
}

/** A round step (1, 2 or 5 times a power of ten) of which about `count` fill `span`. */
export function tickStep(span: number, count: number): number {
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const multiple = [1, 2, 5, 10].find((one) => one * power >= raw * 0.999) ?? 10;
  return multiple * power;
}

/** A time on an axis whose steps are `step`: as many digits as the step needs, in its own unit. */
export function tickLabel(time_s: number, step: number): string {
  const [factor, unit] = step >= 0.1 ? [1, 's'] : step >= 1e-4 ? [1e3, 'ms'] : [1e6, 'µs'];
  const digits = Math.max(0, -Math.floor(Math.log10(step * factor) + 1e-9));
  return `${(time_s * factor).toFixed(digits)} ${unit}`;
}
