/** The past of a run as columns, as `webapp/events/columns.py` writes them: most events are spans, and these come as
 * one array per field. */
import type { RunEvent, Span, SpanKind } from '@/api/types';

const REALS = 5;
const INTEGERS = 8;

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
  readonly byteLength: number;
  private readonly head: Head;
  private readonly reals: Float64Array;
  private readonly integers: Int32Array;

  /** The chunk that begins at byte `from`, a multiple of eight. */
  constructor(body: ArrayBuffer, from = 0) {
    const length = new DataView(body).getUint32(from, true);
    const columns = from + 4 + length;
    this.head = JSON.parse(new TextDecoder().decode(new Uint8Array(body, from + 4, length))) as Head;
    this.cursor = this.head.cursor;
    this.reals = new Float64Array(body, columns, REALS * this.head.spans);
    const reals = this.reals.byteLength;
    this.integers = new Int32Array(body, columns + reals, INTEGERS * this.head.spans);
    this.byteLength = 4 + length + reals + this.integers.byteLength;
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

export interface Page {
  chunks: Columns[];
  /** Whether there are no later events now. */
  isLast: boolean;
}

/** The chunks of an answer; four bytes of zeros after them say that they are all. */
export function pageOf(body: ArrayBuffer): Page {
  const chunks: Columns[] = [];
  let at = 0;
  while (at < body.byteLength && new DataView(body).getUint32(at, true) > 0) {
    const chunk = new Columns(body, at);
    chunks.push(chunk);
    at += chunk.byteLength;
  }
  return { chunks, isLast: at < body.byteLength };
}
