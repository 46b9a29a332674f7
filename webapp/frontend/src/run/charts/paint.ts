/** One animation loop for all canvases: at most 30 frames per second, none without painters. */

const FRAME_MS = 1000 / 30;

type Painter = (now_ms: number) => void;

const painters = new Set<Painter>();
let handle = 0;
let last_ms = 0;

function frame(now_ms: number): void {
  handle = requestAnimationFrame(frame);
  if (now_ms - last_ms < FRAME_MS - 2) return;
  last_ms = now_ms;
  for (const painter of painters) painter(now_ms);
}

/** Calls `painter` on every frame until the returned function is called. */
export function onPaint(painter: Painter): () => void {
  painters.add(painter);
  if (painters.size === 1) handle = requestAnimationFrame(frame);
  return () => {
    painters.delete(painter);
    if (painters.size === 0) cancelAnimationFrame(handle);
  };
}
