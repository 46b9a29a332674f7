import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

import type { RunEvent, SpanKind } from '@/api/types';
import { Columns, pageOf } from './columns';
import { cluster, encoded, model, span } from './fixtures';
import { RunData } from './runData';
import { snapshotAt, takeSnapshot } from './snapshot';

/** Numbers in [0, 1), the same for the same seed (Park and Miller's generator). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const KINDS: SpanKind[] = ['compute', 'send', 'recv', 'load', 'store', 'evict', 'wait', 'stage'];
const MARKS = [
  'token_emitted',
  'request_arrived',
  'memory',
  'link_changed',
  'link_down',
  'device_lost',
  'promoted',
];

/** Events in the order of their times, of every kind that changes the state of a run. */
function randomEvents(random: () => number, count: number): RunEvent[] {
  const one = <T>(of: readonly T[]): T => of[Math.floor(random() * of.length)]!;
  let time_s = 0;
  return Array.from({ length: count }, (_, index): RunEvent => {
    time_s += random();
    const what = random();
    if (what < 0.7) {
      const [device, peer] = [one(['a', 'b', 'x']), one(['', 'a', 'b'])];
      const fields = { kind: one(KINDS), device, peer, name: one(['attention', 'ffn', 'Ä']), message: index };
      const pass = { layer: one([-1, 0, 1]), request: one([0, 1]), token: Math.floor(index / 20) };
      return span({ ...fields, ...pass, start_s: time_s - random(), end_s: time_s, bytes: random() * 1e12 });
    }
    if (what < 0.9) {
      const facts = {
        request: 0,
        index,
        text: ` t${index}`,
        link: 'a--b',
        delay_s: random(),
        resident_bytes: random() * 1e9,
      };
      return { type: 'mark', time_s, name: one(MARKS), device: one(['a', 'b', '']), facts };
    }
    if (what < 0.94) return { type: 'clock', time_s, wall_s: 2 * time_s };
    if (what < 0.96) return { type: 'log', level: 'info', text: `line ${index}` };
    if (what < 0.98) return { type: 'state', state: 'running', detail: `${index}` };
    const use = { bit_per_s: 1e8 * random(), set_bit_per_s: 1e8, measured_bit_per_s: null, up: true };
    return { type: 'links', time_s, links: [{ link: 0, forward: random() < 0.5, ...use }] };
  });
}

describe('Columns', () => {
  it('lead to the state of the events one by one, wherever the past is cut', () => {
    for (let seed = 1; seed <= 4; seed += 1) {
      const random = generator(seed);
      const events = randomEvents(random, 600);
      // Rings of 64 spans: the oldest ones are forgotten.
      const whole = new RunData(cluster, model, 8 * 64);
      whole.apply(events);
      const [first, second] = [Math.floor(random() * 300), 300 + Math.floor(random() * 300)];
      const data = new RunData(cluster, model, 8 * 64);
      data.apply(new Columns(encoded(events.slice(0, first), '1')));
      data.apply(new Columns(encoded(events.slice(first, second), '2')));
      data.apply(events.slice(second));
      expect(data).toEqual(whole);
      expect(takeSnapshot(data, 1, 2)).toEqual(takeSnapshot(whole, 1, 2));
      const then_s = random() * whole.time_s;
      expect(snapshotAt(data.at(then_s), data, 1, 2)).toEqual(snapshotAt(whole.at(then_s), whole, 1, 2));
    }
  });

  it('are read as the server writes them', () => {
    const golden = JSON.parse(readFileSync(new URL('./columns.golden.json', import.meta.url), 'utf8')) as {
      batches: RunEvent[][];
      chunk: string;
    };
    const bytes = Uint8Array.from(Buffer.from(golden.chunk, 'base64'));
    const columns = new Columns(bytes.buffer);
    expect(Array.from(columns, (event) => ({ ...event }))).toEqual(golden.batches.flat());
    expect(columns.cursor).toBe('42');
  });

  it('may be of a chunk without spans', () => {
    const log: RunEvent = { type: 'log', level: 'info', text: 'alone' };
    expect([...new Columns(encoded([log], '3'))]).toEqual([log]);
  });
});

describe('pageOf', () => {
  it('divides an answer into its chunks, and knows whether more is there', () => {
    const parts = [
      encoded([span({ token: 5 })], '9'),
      encoded([span({ token: 6 }), span({ token: 7 })], '10'),
    ];
    const body = new Uint8Array([...parts.flatMap((part) => [...new Uint8Array(part)]), 0, 0, 0, 0]);
    const whole = pageOf(body.buffer);
    expect(whole.isLast).toBe(true);
    expect(whole.chunks.map((chunk) => [chunk.cursor, [...chunk].length])).toEqual([
      ['9', 1],
      ['10', 2],
    ]);
    const cut = pageOf(body.buffer.slice(0, -4));
    expect([cut.chunks.length, cut.isLast]).toEqual([2, false]);
    expect(pageOf(new ArrayBuffer(4))).toEqual({ chunks: [], isLast: true });
  });
});
