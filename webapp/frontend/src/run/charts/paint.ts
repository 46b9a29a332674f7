/** One animation loop for all canvases. What a person does is painted with the next frame; what is new in the data as
 * often as painting leaves the page free for other work. */

/** Of the time, what painting new data may take. */
const SHARE = 0.3;
const FASTEST_MS = 30;
const SLOWEST_MS = 400;
/** How much the newest cost counts. */
const NEWEST = 0.3;

/** When new data is painted: the sooner again, the less it took. */
export class Pace {
  private began_ms = 0;
  private cost_ms: number | null = null;
  private next_ms = -Infinity;

  isDue(now_ms: number): boolean {
    return now_ms >= this.next_ms;
  }

  begin(now_ms: number): void {
    this.began_ms = now_ms;
    this.next_ms = now_ms + SLOWEST_MS;
  }

  /** `now_ms`: when the picture was on its way to the screen. */
  end(now_ms: number): void {
    const cost_ms = now_ms - this.began_ms;
    this.cost_ms = this.cost_ms === null ? cost_ms : this.cost_ms + NEWEST * (cost_ms - this.cost_ms);
    this.next_ms = this.began_ms + Math.min(Math.max(this.cost_ms / SHARE, FASTEST_MS), SLOWEST_MS);
  }
}

export interface Frame {
  /** The wall clock, the same for all painters of a frame. */
  wall_ms: number;
  /** Milliseconds since the page was opened. */
  now_ms: number;
  /** Whether new data may be painted. */
  due: boolean;
}

/** Paints if it has to, and says whether it did. */
type Painter = (frame: Frame) => boolean;

const painters = new Set<Painter>();
const pace = new Pace();
let handle = 0;
let painted: MessageChannel | null = null;

function frame(): void {
  handle = requestAnimationFrame(frame);
  const now_ms = performance.now();
  const due = pace.isDue(now_ms);
  const now = { wall_ms: Date.now(), now_ms, due };
  let count = 0;
  for (const painter of painters) count += Number(painter(now));
  if (count === 0 || !due) return;
  pace.begin(now_ms);
  painted?.port2.postMessage(null);
}

/** Calls `painter` on every frame until the returned function is called. */
export function onPaint(painter: Painter): () => void {
  if (!painted) {
    painted = new MessageChannel();
    // A message has its turn after the frame's own work, such as filling the canvas' pixels.
    painted.port1.onmessage = () => pace.end(performance.now());
  }
  painters.add(painter);
  if (painters.size === 1) handle = requestAnimationFrame(frame);
  return () => {
    painters.delete(painter);
    if (painters.size === 0) cancelAnimationFrame(handle);
  };
}
