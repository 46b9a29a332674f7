/** Ring buffers for a run's events: they double up to a cap, then overwrite the oldest entry. */
import type { Span, SpanKind } from '@/api/types';

/** A ring keeps the place of a kind in this list. */
export const SPAN_KINDS: readonly SpanKind[] = [
  'compute',
  'send',
  'recv',
  'load',
  'store',
  'evict',
  'wait',
  'stage',
];

const FIRST_CAPACITY = 256;
/** How many places a span may lie from its place in the order of ends. */
const DISORDER = 32;
/** Spans of a lane that may overlap, such as sends to several devices. */
export const OVERLAPPING = 64;

/** Interns names of operations and devices: a number per name keeps the buffers small. */
export class Names {
  private readonly ids = new Map<string, number>();
  private readonly list: string[] = [];

  id(name: string): number {
    let id = this.ids.get(name);
    if (id === undefined) {
      id = this.list.length;
      this.ids.set(name, id);
      this.list.push(name);
    }
    return id;
  }

  name(id: number): string {
    return this.list[id] ?? '';
  }
}

/** A span read from a ring; the ring belongs to one device. */
export type SpanView = Omit<Span, 'device'>;

type Column = Float64Array | Int32Array | Int16Array | Uint8Array;

/** Spans of one lane of one device, oldest first; `at(0)` is the oldest that is kept. */
export class SpanRing {
  length = 0;
  dropped = 0;
  private head = 0;
  private capacity: number;
  private start: Float64Array;
  private end: Float64Array;
  private bytes: Float64Array;
  private payload: Float64Array;
  private flops: Float64Array;
  private name: Int32Array;
  private peer: Int32Array;
  private request: Int32Array;
  private token: Int32Array;
  private message: Int32Array;
  private layer: Int16Array;
  private kind: Uint8Array;

  constructor(
    private readonly names: Names,
    private readonly cap: number,
  ) {
    this.capacity = Math.min(FIRST_CAPACITY, cap);
    this.start = new Float64Array(this.capacity);
    this.end = new Float64Array(this.capacity);
    this.bytes = new Float64Array(this.capacity);
    this.payload = new Float64Array(this.capacity);
    this.flops = new Float64Array(this.capacity);
    this.name = new Int32Array(this.capacity);
    this.peer = new Int32Array(this.capacity);
    this.request = new Int32Array(this.capacity);
    this.token = new Int32Array(this.capacity);
    this.message = new Int32Array(this.capacity);
    this.layer = new Int16Array(this.capacity);
    this.kind = new Uint8Array(this.capacity);
  }

  push(span: Span): void {
    if (this.length === this.capacity && this.capacity < this.cap) this.grow();
    const at = (this.head + this.length) % this.capacity;
    this.start[at] = span.start_s;
    this.end[at] = span.end_s;
    this.bytes[at] = span.bytes;
    this.payload[at] = span.payload_bytes;
    this.flops[at] = span.flops;
    this.name[at] = this.names.id(span.name);
    this.peer[at] = this.names.id(span.peer);
    this.request[at] = span.request;
    this.token[at] = span.token;
    this.message[at] = span.message;
    this.layer[at] = span.layer;
    this.kind[at] = SPAN_KINDS.indexOf(span.kind);
    if (this.length < this.capacity) this.length += 1;
    else {
      this.head = (this.head + 1) % this.capacity;
      this.dropped += 1;
    }
  }

  startAt(index: number): number {
    return this.start[(this.head + index) % this.capacity]!;
  }

  endAt(index: number): number {
    return this.end[(this.head + index) % this.capacity]!;
  }

  kindAt(index: number): SpanKind {
    return SPAN_KINDS[this.kind[(this.head + index) % this.capacity]!]!;
  }

  /** The times of spans from index `first` up to `last`, in order; `kind` is a place in SPAN_KINDS. */
  forEach(
    first: number,
    last: number,
    visit: (start_s: number, end_s: number, kind: number, index: number) => void,
  ): void {
    const { start, end, kind, capacity } = this;
    let at = (this.head + first) % capacity;
    for (let index = first; index < last; index += 1) {
      visit(start[at]!, end[at]!, kind[at]!, index);
      at = at + 1 === capacity ? 0 : at + 1;
    }
  }

  /** The index of the first span that ends after `time_s`; `length` if there is none. Spans arrive nearly in the
   * order of their ends: a few that arrived early are looked for as well. */
  firstEndingAfter(time_s: number): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.endAt(middle) > time_s) high = middle;
      else low = middle + 1;
    }
    let first = low;
    for (let index = low - 1; index >= Math.max(0, low - DISORDER); index -= 1)
      if (this.endAt(index) > time_s) first = index;
    return first;
  }

  /** The index of a span that goes on at `time_s`, or -1. */
  covering(time_s: number): number {
    const first = this.firstEndingAfter(time_s);
    const last = Math.min(this.length, first + OVERLAPPING);
    for (let index = first; index < last; index += 1)
      if (this.startAt(index) <= time_s && time_s < this.endAt(index)) return index;
    return -1;
  }

  /** The spans that have ended at `time_s`. It shares this ring's memory: read it before the next push. */
  until(time_s: number): SpanRing {
    const view = Object.create(this) as SpanRing;
    view.length = this.firstEndingAfter(time_s);
    return view;
  }

  view(index: number): SpanView {
    const at = (this.head + index) % this.capacity;
    return {
      kind: SPAN_KINDS[this.kind[at]!]!,
      name: this.names.name(this.name[at]!),
      layer: this.layer[at]!,
      start_s: this.start[at]!,
      end_s: this.end[at]!,
      bytes: this.bytes[at]!,
      payload_bytes: this.payload[at]!,
      flops: this.flops[at]!,
      peer: this.names.name(this.peer[at]!),
      request: this.request[at]!,
      token: this.token[at]!,
      message: this.message[at]!,
    };
  }

  private grow(): void {
    // Only ever called before the first overwrite, so the oldest entry still sits at index 0.
    this.capacity = Math.min(this.capacity * 2, this.cap);
    const widen = <T extends Column>(old: T): T => {
      const wide = new (old.constructor as new (n: number) => T)(this.capacity);
      wide.set(old);
      return wide;
    };
    this.start = widen(this.start);
    this.end = widen(this.end);
    this.bytes = widen(this.bytes);
    this.payload = widen(this.payload);
    this.flops = widen(this.flops);
    this.name = widen(this.name);
    this.peer = widen(this.peer);
    this.request = widen(this.request);
    this.token = widen(this.token);
    this.message = widen(this.message);
    this.layer = widen(this.layer);
    this.kind = widen(this.kind);
  }
}

/** A bounded list of objects, oldest first. */
export class Ring<T> {
  dropped = 0;
  private items: T[] = [];
  private head = 0;

  constructor(private readonly cap: number) {}

  /** Number of items pushed so far, also those that were dropped. */
  get pushed(): number {
    return this.items.length + this.dropped;
  }

  get length(): number {
    return this.items.length;
  }

  push(item: T): void {
    if (this.items.length < this.cap) this.items.push(item);
    else {
      this.items[this.head] = item;
      this.head = (this.head + 1) % this.cap;
      this.dropped += 1;
    }
  }

  at(index: number): T | undefined {
    return this.items[(this.head + index) % this.items.length];
  }

  last(): T | undefined {
    return this.items.length === 0 ? undefined : this.at(this.items.length - 1);
  }

  toArray(): T[] {
    return [...this.items.slice(this.head), ...this.items.slice(0, this.head)];
  }
}
