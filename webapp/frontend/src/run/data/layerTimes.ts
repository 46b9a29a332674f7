/** How long each layer took in one forward pass: from its first start to its last end over all devices. */
import type { Span } from '@/api/types';

const KEPT_PASSES = 12;

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

  constructor(private readonly numLayers: number) {}

  add(span: Span): void {
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
    return pass;
  }
}

function latency(pass: Pass): LayerLatency {
  const seconds = Array.from(pass.end, (end, layer) => (end > -Infinity ? end - pass.start[layer]! : NaN));
  return { request: pass.request, token: pass.token, seconds };
}
