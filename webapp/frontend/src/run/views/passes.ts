/** A pipeline as its micro-batches: stretches in which a stage computes one request's step, and the bubbles between. */
import type { SpanRing } from '../rings';

export interface Pass {
  request: number;
  token: number;
  start_s: number;
  end_s: number;
}

/** Passes that reach into [from_s, to_s], oldest first; operations of one step of one request are one pass. */
export function passesOf(ring: SpanRing, from_s: number, to_s: number): Pass[] {
  const passes: Pass[] = [];
  for (let index = 0; index < ring.length; index += 1) {
    if (ring.endAt(index) < from_s || ring.startAt(index) > to_s || ring.kindAt(index) !== 'compute') continue;
    const { request, token, start_s, end_s } = ring.view(index);
    const last = passes.at(-1);
    if (last && last.request === request && last.token === token) last.end_s = Math.max(last.end_s, end_s);
    else passes.push({ request, token, start_s, end_s });
  }
  return passes;
}

/** Share of [from_s, to_s] in which the stage had no pass. */
export function bubbleShare(passes: readonly Pass[], from_s: number, to_s: number): number {
  if (to_s <= from_s) return 0;
  const busy = passes.reduce((sum, pass) => sum + Math.max(0, Math.min(pass.end_s, to_s) - Math.max(pass.start_s, from_s)), 0);
  return Math.max(0, 1 - busy / (to_s - from_s));
}
