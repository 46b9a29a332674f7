import type { RunEvent } from '@/api/types';
import { describe, expect, it } from 'vitest';

import { describeMark, RunData } from './runData';
import { cluster, model, span } from './fixtures';
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

  it('forgets what came before another attempt, but not the log, also at an earlier instant', () => {
    const begin: RunEvent = { type: 'attempt', number: 2, dilation: 9, words: 'second attempt' };
    const tokens = (...times: number[]): RunEvent[] =>
      times.map((time_s, index) => {
        const facts = { request: 0, index, token: index, text: `t${time_s}` };
        return { type: 'mark', time_s, name: 'token_emitted', device: 'a', facts };
      });
    const log: RunEvent = { type: 'log', level: 'info', text: 'first' };
    const data = new RunData(cluster, model);
    data.apply([
      log,
      span({ start_s: 0, end_s: 5 }),
      ...tokens(3, 5),
      begin,
      span({ end_s: 1 }),
      ...tokens(1, 2),
    ]);
    expect(data.tokens.toArray().map(({ text }) => text)).toEqual(['t1', 't2']);
    expect([data.device('a')!.lanes.compute.length, data.time_s, data.log.length]).toEqual([1, 2, 1]);
    expect(data.events).toBe(8);
    const then = data.at(1.5);
    expect([data.attempt, then.attempt]).toEqual(['second attempt', 'second attempt']);
    expect([then.tokens.toArray().length, then.device('a')!.lanes.compute.length]).toEqual([1, 1]);
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

  it('has of each device the memory that its system does not keep', () => {
    const [first, ...others] = cluster.devices;
    const devices = [{ ...first!, memory_bytes: 4e9, reserved_bytes: 1e9 }, ...others];
    expect(new RunData({ ...cluster, devices }, model).devices[0]!.memoryBytes).toBe(3e9);
    expect(new RunData(cluster, model).devices[0]!.memoryBytes).toBe(first!.memory_bytes);
  });

  it('counts a refused change, so that its control can go back', () => {
    const data = new RunData(cluster, model);
    data.apply([{ type: 'change_refused', reason: 'no link x--y.' }]);
    expect(data.refusals).toBe(1);
    expect(data.log.toArray().at(-1)).toMatchObject({
      level: 'error',
      text: 'Change refused: no link x--y.',
    });
  });

  it('counts an acknowledged change and records it as an injection', () => {
    const data = new RunData(cluster, model);
    const facts = { link: 'b--a', direction: 'forward', bit_per_s: 5e6, by: 'ada' };
    data.apply([{ type: 'mark', time_s: 3, name: 'link_changed', device: '', facts }]);
    expect(data.links[0]).toMatchObject({
      changes: 1,
      forward: { set_bit_per_s: 5e6 },
      backward: { set_bit_per_s: 1e8 },
    });
    expect(data.injections).toEqual([
      { time_s: 3, name: 'link_changed', label: 'b → a 5 Mbit/s', by: 'ada' },
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
    expect(data.links[0]!.backward.use_bit_per_s).toBe(2e6);
    data.apply([
      { type: 'links', time_s: 2, links: [{ ...sample, bit_per_s: 0, measured_bit_per_s: null }] },
    ]);
    expect(data.links[0]!.backward).toMatchObject({
      use_bit_per_s: 0,
      set_bit_per_s: 1e7,
      measured_bit_per_s: 9.8e6,
    });
    expect(data.links[0]!.forward.measured_bit_per_s).toBeNull();
    const changed = { link: 'a--b', direction: 'backward', bit_per_s: 240e3 };
    data.apply([{ type: 'mark', time_s: 3, name: 'link_changed', device: '', facts: changed }]);
    expect(data.links[0]!.backward.measured_bit_per_s).toBeNull(); // it was of another rate
  });

  it('names a failed device and the time of its failure', () => {
    const data = new RunData(cluster, model);
    data.apply([{ type: 'mark', time_s: 4.5, name: 'device_lost', device: 'b', facts: {} }]);
    expect(data.device('b')!.failedAt_s).toBe(4.5);
    expect(takeSnapshot(data, 1, 1).devices[1]!.activity.state).toBe('failed');
  });

  it('keeps every state of the run in order, with its detail, and logs it', () => {
    const data = new RunData(cluster, model);
    data.apply([
      { type: 'state', state: 'building', detail: 'dilation 4' },
      { type: 'state', state: 'running', detail: '' },
    ]);
    expect(data.states).toEqual([
      { state: 'building', detail: 'dilation 4' },
      { state: 'running', detail: '' },
    ]);
    expect([data.state, data.stateDetail]).toEqual(['running', '']);
    expect(data.log.toArray().map((entry) => entry.text)).toEqual(['building: dilation 4', 'running']);
  });

  it('counts events, and weights that were loaded while it ran', () => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ kind: 'load', start_s: 1, end_s: 3, bytes: 10 }),
      span({ kind: 'load', start_s: 3, end_s: 4, bytes: 5 }),
      span({ kind: 'evict', start_s: 4, end_s: 4, bytes: 5 }),
    ]);
    expect(data.events).toBe(3);
    expect(data.device('a')).toMatchObject({ loadedBytes: 15, loading_s: 3 });
  });

  it('follows the memory of a device, its peak included', () => {
    const data = new RunData(cluster, model);
    const memory = (resident_bytes: number, peak_bytes: number) =>
      data.apply([
        { type: 'mark', time_s: 1, name: 'memory', device: 'a', facts: { resident_bytes, peak_bytes } },
      ]);
    memory(70, 90);
    memory(60, 80);
    expect(data.device('a')).toMatchObject({ residentBytes: 60, peakBytes: 90 });
  });

  it('takes a link down and up again', () => {
    const data = new RunData(cluster, model);
    const mark = (name: string) =>
      data.apply([{ type: 'mark', time_s: 1, name, device: '', facts: { link: 'a--b' } }]);
    mark('link_down');
    expect(data.links[0]).toMatchObject({ up: false, changes: 1 });
    mark('link_up');
    expect(data.links[0]).toMatchObject({ up: true, changes: 2 });
  });
});

describe('the clock of RunData', () => {
  const running = () => {
    const data = new RunData(cluster, model);
    // 2 s of virtual time took 8 s of wall clock: a dilation of 4. The event arrived at 1,000 ms.
    data.apply([{ type: 'clock', time_s: 2, wall_s: 8 }], 1_000);
    return data;
  };

  it('moves on between two clock events at the rate so far', () => {
    expect(running().now_s(1_400, true)).toBeCloseTo(2.1);
  });

  it('stops 0.6 s of wall clock after the newest clock event', () => {
    expect(running().now_s(60_000, true)).toBeCloseTo(2.15);
  });

  it('never moves back behind the newest event, and stands still once the run is over', () => {
    const data = running();
    data.apply([span({ start_s: 2, end_s: 3 })]);
    expect(data.now_s(1_400, true)).toBe(3);
    expect(data.now_s(60_000, false)).toBe(3);
  });
});

describe('devices that are silent', () => {
  const silent = (silent_s: Record<string, number> | undefined, time_s: number): RunEvent =>
    silent_s
      ? { type: 'clock', time_s, wall_s: time_s, silent_s }
      : { type: 'clock', time_s, wall_s: time_s };
  const silences = (data: RunData) => data.devices.map(({ silent_s }) => silent_s);

  it('are those of the newest clock, until it names them no more', () => {
    const data = new RunData(cluster, model);
    data.apply([silent(undefined, 1)]);
    expect(silences(data)).toEqual([null, null]);
    data.apply([silent({ b: 2.1 }, 2)]);
    expect(silences(data)).toEqual([null, 2.1]);
    data.apply([silent({ b: 2.4, a: 2 }, 3), span({})]);
    expect(silences(data)).toEqual([2, 2.4]);
    data.apply([silent(undefined, 4)]);
    expect(silences(data)).toEqual([null, null]);
    expect(silences(data.at(2.5))).toEqual([null, 2.1]);
  });

  it('are none once the run is over', () => {
    const data = new RunData(cluster, model);
    data.apply([silent({ b: 9 }, 2), { type: 'state', state: 'failed', detail: '' }]);
    expect(silences(data)).toEqual([null, null]);
  });
});

describe('describeMark', () => {
  const mark = (name: string, device: string, facts: Record<string, unknown>) =>
    describeMark({ time_s: 1, name, device, facts });

  it('says what happened to whom, with figures in units that a person reads', () => {
    const facts = { link: 'a--b', direction: 'both', bit_per_s: 3.6e7, loss_frac: 0.02, delay_s: 0.05 };
    expect(mark('link_changed', '', facts)).toBe('a–b 36 Mbit/s, delay 50 ms, packet loss 2 %');
    expect(mark('link_changed', '', { link: 'a--b', direction: 'backward', delay_s: 0 })).toBe(
      'b → a delay 0 s',
    );
    expect(mark('device_changed', 'b', { factor: 1.5 })).toBe('b takes 1.5 × as long');
    expect(mark('disk_waits', 'b', { uncovered_s: 0.0123, free_bytes: 3.6e7, coverage: 0.5 })).toBe(
      'disk waits · b · uncovered 12.3 ms, free 36 MB, coverage 50 %',
    );
  });

  it('leaves out facts that are empty or nested', () => {
    expect(mark('replanned', '', { reason: 'b failed.', plan: {}, note: '', none: null })).toBe(
      'new plan: b failed.',
    );
  });
});

describe('at', () => {
  const changed = () => {
    const data = new RunData(cluster, model);
    const token = (time_s: number, index: number): RunEvent => ({
      type: 'mark',
      time_s,
      name: 'token_emitted',
      device: 'a',
      facts: { request: 0, index, token: 7 },
    });
    const use = { bit_per_s: 5e6, set_bit_per_s: 1e8, measured_bit_per_s: null, up: true };
    data.apply([
      { type: 'state', state: 'running', detail: '' },
      span({ start_s: 0, end_s: 1, layer: 0, token: 0 }),
      token(1, 0),
      { type: 'links', time_s: 1.5, links: [{ link: 0, forward: true, ...use }] },
      span({ kind: 'load', start_s: 1, end_s: 2, bytes: 100, layer: 1, token: -1 }),
      { type: 'mark', time_s: 2, name: 'link_changed', device: '', facts: { link: 'a--b', delay_s: 0.1 } },
      { type: 'mark', time_s: 3, name: 'device_lost', device: 'b', facts: {} },
      token(4, 1),
      span({ start_s: 2, end_s: 5, layer: 0, token: 2 }),
      { type: 'state', state: 'finished', detail: '' },
    ]);
    return data;
  };

  it('is the run as it was at an instant, while the whole stays as it is', () => {
    const data = changed();
    const then = data.at(2.5);
    expect(then).toMatchObject({ time_s: 2.5, state: 'running', events: 10 });
    expect(then.tokens.toArray().map(({ index }) => index)).toEqual([0]);
    expect(then.links[0]!.forward).toMatchObject({ use_bit_per_s: 5e6, delay_s: 0.1 });
    expect(then.device('b')!.failedAt_s).toBeNull();
    expect(then.device('a')).toMatchObject({ loadedBytes: 100, loading_s: 1 });
    expect(then.device('a')!.lanes.compute.length).toBe(2);
    expect(data.at(1.2).links[0]!.forward).toMatchObject({ use_bit_per_s: 0, delay_s: 0 });
    expect(data.at(3.5).device('b')!.failedAt_s).toBe(3);
    expect(data.device('b')!.failedAt_s).toBe(3);
    expect(data.device('a')!.lanes.compute.length).toBe(3);
  });

  it('is the run itself at its end', () => {
    const data = changed();
    const then = data.at(data.time_s);
    expect(then.state).toBe('finished');
    expect(then.tokens.toArray()).toEqual(data.tokens.toArray());
    expect(then.layers.newest()).toEqual(data.layers.newest());
  });
});
