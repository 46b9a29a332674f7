/** How long each layer took in one forward pass: from its first start to its last end over all devices. */
import type { Span } from '@/api/types';
import type { SpanRing } from './rings';

const KEPT_PASSES = 12;
/** Operations of a device in which its newest forward passes are looked for. */
const RECENT_SPANS = 1_000;

interface Pass {
  request: number;
  token: number;
  start: Float64Array;
  end: Float64Array;
}

export interface LayerLatency {
  request: number;
  token: number;
  /** Seconds per layer; NaN for a layer that has not been computed. */
  seconds: number[];
}

export class LayerTimes {
  private readonly passes = new Map<string, Pass>();
  private first: Pass | null = null;
  /** The pass of the newest operation: the next one is mostly of the same. */
  private last: Pass | null = null;

  constructor(private readonly numLayers: number) {}

  /** The times at `time_s`, from those of the whole run and from the operations of every device until then. */
  static of(numLayers: number, whole: LayerTimes, rings: readonly SpanRing[], time_s: number): LayerTimes {
    const then = new LayerTimes(numLayers);
    const first = whole.first;
    if (first && Math.max(...first.end) <= time_s) then.first = first;
    const recent = rings.flatMap((ring) => {
      const count = Math.min(ring.length, RECENT_SPANS);
      return Array.from({ length: count }, (_, at) => ring.view(ring.length - count + at));
    });
    for (const span of recent.toSorted((a, b) => a.end_s - b.end_s)) then.add(span);
    return then;
  }

  add(span: Pick<Span, 'kind' | 'layer' | 'token' | 'request' | 'start_s' | 'end_s'>): void {
    if (span.kind !== 'compute' || span.layer < 0 || span.layer >= this.numLayers || span.token < 0) return;
    const pass = this.pass(span.request, span.token);
    pass.start[span.layer] = Math.min(pass.start[span.layer]!, span.start_s);
    pass.end[span.layer] = Math.max(pass.end[span.layer]!, span.end_s);
  }

  /** The first pass seen (the prefill of the first request). */
  prefill(): LayerLatency | null {
    return this.first && latency(this.first);
  }

  /** The newest pass in which every layer has been computed. */
  newest(): LayerLatency | null {
    const complete = [...this.passes.values()]
      .toReversed()
      .find((pass) => pass.end.every((end) => end > -Infinity));
    return complete ? latency(complete) : null;
  }

  private pass(request: number, token: number): Pass {
    if (this.last?.request === request && this.last.token === token) return this.last;
    const key = `${request}:${token}`;
    let pass = this.passes.get(key);
    if (!pass) {
      pass = {
        request,
        token,
        start: new Float64Array(this.numLayers).fill(Infinity),
        end: new Float64Array(this.numLayers).fill(-Infinity),
      };
      this.passes.set(key, pass);
      this.first ??= pass;
      if (this.passes.size > KEPT_PASSES) this.passes.delete(this.passes.keys().next().value!);
    }
    this.last = pass;
    return pass;
  }
}

function latency(pass: Pass): LayerLatency {
  const seconds = Array.from(pass.end, (end, layer) => (end > -Infinity ? end - pass.start[layer]! : NaN));
  return { request: pass.request, token: pass.token, seconds };
}
