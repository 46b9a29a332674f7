/** One animation loop for all canvases. What a person does is painted with one of the next frames, new data soon
 * after it has come, and time that passes as often as painting leaves the page free for other work. */

/** Of the time, what painting may take where data keeps coming, and where only time passes. */
const SHARE = { data: 0.6, time: 0.15 };
const FASTEST_MS = 30;
const SLOWEST_MS = 400;
/** How much the newest cost counts. */
const NEWEST = 0.3;

type Reason = keyof typeof SHARE;

/** When the next picture is due: the sooner again, the less the last ones took. */
export class Pace {
  private began_ms = -Infinity;
  private cost_ms: number | null = null;
  private ended = true;

  isDue(now_ms: number, reason: Reason): boolean {
    const cost_ms = this.ended ? (this.cost_ms ?? 0) : SLOWEST_MS;
    const pause_ms = Math.min(Math.max(cost_ms / SHARE[reason], FASTEST_MS), SLOWEST_MS);
    return now_ms >= this.began_ms + pause_ms;
  }

  begin(now_ms: number): void {
    this.began_ms = now_ms;
    this.ended = false;
  }

  /**
   * The picture that was begun at `began_ms` was on its way to the screen at `now_ms`. It may be one that was given
   * up: then the newest is not there yet.
   */
  end(began_ms: number, now_ms: number): void {
    const cost_ms = now_ms - began_ms;
    this.cost_ms = this.cost_ms === null ? cost_ms : this.cost_ms + NEWEST * (cost_ms - this.cost_ms);
    if (began_ms === this.began_ms) this.ended = true;
  }
}

export interface Frame {
  /** The wall clock, the same for all painters of a frame. */
  wall_ms: number;
  /** Milliseconds since the page was opened. */
  now_ms: number;
  /** Whether new data, and the time that has passed, are to be painted. */
  due: boolean;
}

export interface Painter {
  /** Whether it shows data that has changed since its last picture. */
  hasNews: () => boolean;
  /** Paints if it has to, and says whether it did. */
  paint: (frame: Frame) => boolean;
}

const painters = new Set<Painter>();
const pace = new Pace();
let cancelNext = () => {};
let painted: MessageChannel | null = null;

/** The next frame, or after a pause the one that follows it: a frame costs the browser much, also an empty one. */
function next(pause: boolean): void {
  if (pause) {
    const timer = setTimeout(() => next(false), FASTEST_MS);
    cancelNext = () => clearTimeout(timer);
  } else {
    const handle = requestAnimationFrame(frame);
    cancelNext = () => cancelAnimationFrame(handle);
  }
}

function frame(): void {
  const now_ms = performance.now();
  const due = pace.isDue(now_ms, 'time') || (pace.isDue(now_ms, 'data') && anyNews());
  const now = { wall_ms: Date.now(), now_ms, due };
  let count = 0;
  for (const painter of painters) count += Number(painter.paint(now));
  next(count === 0);
  if (count === 0 || !due) return;
  pace.begin(now_ms);
  painted?.port2.postMessage(now_ms);
}

/** All canvases share one picture of the same instant, so the news of one is a reason for all. */
function anyNews(): boolean {
  for (const painter of painters) if (painter.hasNews()) return true;
  return false;
}

/** Calls `painter` on every frame, or soon after if nothing was painted, until the returned function is called. */
export function onPaint(painter: Painter): () => void {
  if (!painted) {
    painted = new MessageChannel();
    // A message has its turn after the frame's own work, such as filling the canvas' pixels.
    painted.port1.onmessage = ({ data }: MessageEvent<number>) => pace.end(data, performance.now());
  }
  painters.add(painter);
  if (painters.size === 1) next(false);
  return () => {
    painters.delete(painter);
    if (painters.size === 0) cancelNext();
  };
}
