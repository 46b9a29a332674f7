/** A pipeline as its micro-batches: stretches in which a stage computes one request's step, and the bubbles between. */
import type { SpanRing } from '@/run/data/rings';

interface Pass {
  request: number;
  token: number;
  start_s: number;
  end_s: number;
}

export interface Passes {
  passes: Pass[];
  /** Seconds of the stretch in which the stage computed. */
  busy_s: number;
}

/** What a stage computed in [from_s, to_s], oldest first. Operations of one step of one request are one pass, unless
 * more than `gap_s` lies between them: then they are two, with a bubble in the middle. */
export function passesOf(ring: SpanRing, from_s: number, to_s: number, gap_s: number): Passes {
  const passes: Pass[] = [];
  let busy_s = 0;
  for (let index = 0; index < ring.length; index += 1) {
    if (ring.endAt(index) < from_s || ring.startAt(index) > to_s || ring.kindAt(index) !== 'compute')
      continue;
    const { request, token, start_s, end_s } = ring.view(index);
    busy_s += Math.min(end_s, to_s) - Math.max(start_s, from_s);
    const last = passes.at(-1);
    if (last && last.request === request && last.token === token && start_s - last.end_s <= gap_s) {
      last.end_s = Math.max(last.end_s, end_s);
    } else passes.push({ request, token, start_s, end_s });
  }
  return { passes, busy_s };
}
