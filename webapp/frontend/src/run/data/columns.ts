/** The past of a run as columns, as `webapp/runs/columns.py` writes them: most events are spans, and these come as
 * one array per field. */
import type { RunEvent, Span, SpanKind } from '@/api/types';

const REALS = 5;

interface Head {
  cursor: string;
  spans: number;
  names: string[];
  /** An event that is no span, and how many spans of the chunk are before it. */
  others: [RunEvent, number][];
}

/** The events of one chunk, in order. All spans are one and the same object, which changes with every step. */
export class Columns implements Iterable<RunEvent> {
  /** The number of the last batch of the chunk. */
  readonly cursor: string;
  private readonly head: Head;
  private readonly reals: Float64Array;
  private readonly integers: Int32Array;

  constructor(chunk: ArrayBuffer) {
    const length = new DataView(chunk).getUint32(0, true);
    this.head = JSON.parse(new TextDecoder().decode(new Uint8Array(chunk, 4, length))) as Head;
    this.cursor = this.head.cursor;
    this.reals = new Float64Array(chunk, 4 + length, REALS * this.head.spans);
    this.integers = new Int32Array(chunk, 4 + length + this.reals.byteLength);
  }

  *[Symbol.iterator](): Iterator<RunEvent> {
    const span = { type: 'span' } as { type: 'span' } & Span;
    let next = 0;
    for (const [event, before] of this.head.others) {
      for (; next < before; next += 1) yield this.read(next, span);
      yield event;
    }
    for (; next < this.head.spans; next += 1) yield this.read(next, span);
  }

  private read<T extends Span>(index: number, span: T): T {
    const { reals, integers } = this;
    const { spans: count, names } = this.head;
    span.start_s = reals[index]!;
    span.end_s = reals[count + index]!;
    span.bytes = reals[2 * count + index]!;
    span.payload_bytes = reals[3 * count + index]!;
    span.flops = reals[4 * count + index]!;
    span.layer = integers[index]!;
    span.request = integers[count + index]!;
    span.token = integers[2 * count + index]!;
    span.message = integers[3 * count + index]!;
    span.device = names[integers[4 * count + index]!]!;
    span.kind = names[integers[5 * count + index]!] as SpanKind;
    span.name = names[integers[6 * count + index]!]!;
    span.peer = names[integers[7 * count + index]!]!;
    return span;
  }
}

/** The frames of an answer; the last one is empty if there is no more for now. */
export function framesOf(body: ArrayBuffer): Uint8Array<ArrayBuffer>[] {
  const lengths = new DataView(body);
  const frames: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 0; at < body.byteLength;) {
    const length = lengths.getUint32(at, true);
    frames.push(new Uint8Array(body, at + 4, length));
    at += 4 + length;
  }
  return frames;
}

/** What is in a frame in zlib's format. */
export async function inflated(frame: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([frame]).stream().pipeThrough(new DecompressionStream('deflate'));
  return new Response(stream).arrayBuffer();
}
