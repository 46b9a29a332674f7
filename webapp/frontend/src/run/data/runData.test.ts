import { describe, expect, it } from 'vitest';

import { activity } from './activity';
import { RunData } from './runData';
import { cluster, model, span } from './fixtures';
import { Ring } from './rings';
import { takeSnapshot } from './snapshot';

describe('RunData', () => {
  it('puts every span into the lane of its device and kind', () => {
    const data = new RunData(cluster, model);
    data.apply([
      span(),
      span({ kind: 'load' }),
      span({ kind: 'send', peer: 'b' }),
      span({ device: 'b', kind: 'wait' }),
    ]);
    expect(data.device('a')!.lanes.compute.length).toBe(2);
    expect(data.device('a')!.lanes.send.view(0).peer).toBe('b');
    expect(data.device('b')!.lanes.wait.length).toBe(1);
  });

  it('forgets the oldest spans beyond its budget and says how many', () => {
    const data = new RunData(cluster, model, 8 * 64);
    for (let n = 0; n < 1000; n += 1) data.apply([span({ start_s: n, end_s: n + 1, token: n })]);
    const ring = data.device('a')!.lanes.compute;
    expect(ring.length).toBe(64);
    expect(data.droppedSpans).toBe(936);
    expect(ring.view(0).token).toBe(936);
    expect(ring.view(63).token).toBe(999);
  });

  it('keeps spans readable while a ring grows', () => {
    const data = new RunData(cluster, model);
    for (let n = 0; n < 5000; n += 1)
      data.apply([span({ start_s: n, end_s: n + 0.5, name: `op${n % 3}`, layer: n % 2 })]);
    const ring = data.device('a')!.lanes.compute;
    expect(ring.length).toBe(5000);
    expect(ring.view(4321)).toMatchObject({
      start_s: 4321,
      end_s: 4321.5,
      name: 'op1',
      layer: 1,
      kind: 'compute',
    });
  });

  it('collects tokens in order with their latency', () => {
    const data = new RunData(cluster, model);
    for (const index of [0, 1]) {
      const facts = { request: 0, index, token: 7 + index, text: ` t${index}`, latency_s: 0.25 };
      data.apply([{ type: 'mark', time_s: index, name: 'token_emitted', device: 'a', facts }]);
    }
    expect(data.tokens.toArray().map((token) => token.text)).toEqual([' t0', ' t1']);
    expect(data.tokens.last()).toMatchObject({ token: 8, latency_s: 0.25, time_s: 1 });
    expect(data.log.length).toBe(0);
  });

  it('counts a token from the one before it, and the first from the arrival of its request', () => {
    const data = new RunData(cluster, model);
    const mark = (time_s: number, name: string, facts: Record<string, unknown>) =>
      data.apply([{ type: 'mark', time_s, name, device: 'a', facts }]);
    mark(2, 'request_arrived', { request: 1 });
    mark(2.5, 'token_emitted', { request: 1, index: 0, token: null });
    mark(2.75, 'token_emitted', { request: 1, index: 1, token: 4 });
    expect(data.tokens.toArray().map((token) => token.latency_s)).toEqual([0.5, 0.25]);
  });

  it('counts a refused change, so that its control can go back', () => {
    const data = new RunData(cluster, model);
    data.apply([{ type: 'log', level: 'error', text: 'Change refused: no link x--y.' }]);
    expect(data.refusals).toBe(1);
  });

  it('counts an acknowledged change and records it as an injection', () => {
    const data = new RunData(cluster, model);
    const facts = { link: 'b--a', direction: 'forward', bit_per_s: 5e6 };
    data.apply([{ type: 'mark', time_s: 3, name: 'link_changed', device: '', facts }]);
    expect(data.links[0]).toMatchObject({
      changes: 1,
      forward: { set_bit_per_s: 5e6 },
      backward: { set_bit_per_s: 1e8 },
    });
    expect(data.injections).toEqual([
      { time_s: 3, name: 'link_changed', label: expect.stringContaining('5.00 Mbit/s') },
    ]);
    expect(data.log.last()).toMatchObject({ level: 'injection', time_s: 3 });
  });

  it('takes use and measured capacity of each direction from the samples', () => {
    const data = new RunData(cluster, model);
    const sample = {
      link: 0,
      forward: false,
      bit_per_s: 2e6,
      set_bit_per_s: 1e7,
      measured_bit_per_s: 9.8e6,
      up: true,
    };
    data.apply([{ type: 'links', time_s: 1, links: [sample] }]);
    data.apply([
      { type: 'links', time_s: 2, links: [{ ...sample, bit_per_s: 0, measured_bit_per_s: null }] },
    ]);
    expect(data.links[0]!.backward).toMatchObject({
      use_bit_per_s: 0,
      set_bit_per_s: 1e7,
      measured_bit_per_s: 9.8e6,
    });
    expect(data.links[0]!.forward.measured_bit_per_s).toBeNull();
  });

  it('names a lost device and the time of its loss', () => {
    const data = new RunData(cluster, model);
    data.apply([{ type: 'mark', time_s: 4.5, name: 'device_lost', device: 'b', facts: {} }]);
    expect(data.device('b')!.lostAt_s).toBe(4.5);
    expect(takeSnapshot(data, 1, 1).devices[1]!.activity.state).toBe('lost');
  });

  it('measures a layer from its first start to its last end over all devices', () => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ layer: 0, start_s: 1, end_s: 2, token: 0 }),
      span({ layer: 0, start_s: 1.5, end_s: 4, token: 0, device: 'b' }),
      span({ layer: 1, start_s: 4, end_s: 5, token: 0 }),
      span({ layer: 0, start_s: 5, end_s: 5.5, token: 1 }),
    ]);
    expect(data.layers.prefill()).toEqual({ request: 0, token: 0, seconds: [3, 1] });
    expect(data.layers.newest()!.token).toBe(0);
    data.apply([span({ layer: 1, start_s: 6, end_s: 6.25, token: 1 })]);
    expect(data.layers.newest()).toEqual({ request: 0, token: 1, seconds: [0.5, 0.25] });
  });
});

describe('activity', () => {
  it('is named after the busiest lane, and waiting only when nothing else happens', () => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ kind: 'wait', start_s: 0, end_s: 0.9 }),
      span({ kind: 'send', start_s: 0.5, end_s: 0.8 }),
      span({ device: 'b', kind: 'wait', start_s: 0, end_s: 1 }),
    ]);
    const a = activity(data.device('a')!, 1, 1);
    expect(a.state).toBe('sending');
    expect(a.shares.send).toBeCloseTo(0.3);
    expect(activity(data.device('b')!, 1, 1).state).toBe('waiting');
    expect(activity(data.device('b')!, 9, 1).state).toBe('idle');
  });
});

describe('Ring', () => {
  it('keeps the newest items in order', () => {
    const ring = new Ring<number>(3);
    for (const n of [1, 2, 3, 4, 5]) ring.push(n);
    expect(ring.toArray()).toEqual([3, 4, 5]);
    expect(ring.last()).toBe(5);
    expect(ring.dropped).toBe(2);
  });
});
