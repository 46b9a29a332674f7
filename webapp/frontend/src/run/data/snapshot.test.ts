import { describe, expect, it } from 'vitest';
import { cluster, model, span } from './fixtures';
import { RunData } from './runData';
import type { RunEvent } from '@/api/types';
import { ACTIVITY_WINDOW_WALL_S, snapshotAt, takeSnapshot } from './snapshot';

describe('takeSnapshot', () => {
  it('looks back a wall-clock window: the more dilated the run, the shorter in virtual time', () => {
    const data = new RunData(cluster, model);
    // Computing in (0, 0.7], then 0.3 s of waiting: 0.75 s of wall clock at dilation 1 is (0.25, 1].
    data.apply([span({ start_s: 0, end_s: 0.7 }), span({ kind: 'wait', start_s: 0.7, end_s: 1 })]);
    data.apply([{ type: 'clock', time_s: 1, wall_s: 1 }]);
    const native = takeSnapshot(data, 1, 1).devices[0]!;
    expect(native.activity.shares.compute).toBeCloseTo(0.45 / ACTIVITY_WINDOW_WALL_S);
    expect(takeSnapshot(data, 1, 10).devices[0]!.activity.shares.compute).toBe(0);
  });

  it('knows the dilation from the run’s clock, whoever chose it', () => {
    const data = new RunData(cluster, model);
    expect(takeSnapshot(data, 1, 1).dilation).toBeNull();
    data.apply([{ type: 'clock', time_s: 2, wall_s: 5 }]);
    expect(takeSnapshot(data, 1, 1).dilation).toBe(2.5);
  });

  it('shows the stages of a pipeline at one instant: only one of them computes', () => {
    const data = new RunData(cluster, model);
    // a computes in (0, 0.4], b in (0.4, 0.8]; each waits for the other. What a does after 0.4 is not known yet.
    data.apply([
      span({ device: 'a', start_s: 0, end_s: 0.4, layer: 0 }),
      span({ device: 'b', kind: 'wait', start_s: 0, end_s: 0.4 }),
      span({ device: 'b', start_s: 0.4, end_s: 0.8, layer: 1 }),
    ]);
    const shown = takeSnapshot(data, 1, 1);
    expect(shown.instant_s).toBe(0.4);
    expect(shown.devices.map(({ activity: { state, layer } }) => [state, layer])).toEqual([
      ['computing', 0],
      ['waiting', null],
    ]);
  });

  it('does not wait for a device that stays silent: it is busy or waits', () => {
    const data = new RunData(cluster, model);
    data.apply([span({ device: 'a', start_s: 0, end_s: 0.4 }), span({ device: 'b', start_s: 0, end_s: 9 })]);
    const shown = takeSnapshot(data, 1, 1);
    expect(shown.instant_s).toBe(7);
    expect(shown.devices.map(({ activity: { state } }) => state)).toEqual(['no data yet', 'computing']);
  });

  it('shows a device of a service idle while nobody has asked, and not while a question waits', () => {
    const data = new RunData(cluster, model);
    data.service.serves = true;
    data.apply([
      { type: 'state', state: 'running', detail: '' },
      span({ device: 'a', start_s: 0, end_s: 0.4 }),
      span({ device: 'b', start_s: 0, end_s: 9 }),
    ]);
    const state = () => takeSnapshot(data, 1, 1).devices[0]!.activity.state;
    const mark = (name: string): RunEvent => ({
      type: 'mark',
      time_s: 9,
      name,
      device: '',
      facts: { request: 0 },
    });
    expect(state()).toBe('idle');
    data.apply([mark('request_accepted')]);
    expect(state()).toBe('no data yet');
    data.apply([mark('request_begun')]);
    expect(state()).toBe('no data yet');
    data.apply([mark('request_finished')]);
    expect(state()).toBe('idle');
    expect(snapshotAt(data.at(8), data, 1, 1).devices[0]!.activity.state).toBe('idle');
  });

  it('shows no device and no link busy once the run is over', () => {
    const data = new RunData(cluster, model);
    const use = { bit_per_s: 5e6, set_bit_per_s: 1e8, measured_bit_per_s: 9e7, up: true };
    data.apply([
      span({ start_s: 0, end_s: 1 }),
      { type: 'links', time_s: 1, links: [{ link: 0, forward: true, ...use }] },
    ]);
    expect(takeSnapshot(data, 1, 1).links[0]!.forward.use_bit_per_s).toBe(5e6);
    data.apply([{ type: 'state', state: 'finished', detail: '' }]);
    const last = takeSnapshot(data, 2, 1);
    expect(last.links[0]!.forward).toMatchObject({ use_bit_per_s: 0, measured_bit_per_s: 9e7 });
    expect(last.devices[0]!.activity.state).toBe('idle');
  });

  it('does not change when the run goes on', () => {
    const data = new RunData(cluster, model);
    data.apply([{ type: 'state', state: 'running', detail: '' }]);
    const before = takeSnapshot(data, 1, 1);
    const use = { bit_per_s: 5e6, set_bit_per_s: 1e8, measured_bit_per_s: null, up: true };
    data.apply([
      { type: 'state', state: 'verifying', detail: '' },
      { type: 'log', level: 'info', text: 'later' },
      { type: 'links', time_s: 1, links: [{ link: 0, forward: true, ...use }] },
      { type: 'mark', time_s: 1, name: 'loss_detected', device: 'b', facts: { how: 'killed', since_s: 0 } },
    ]);
    expect(before.states).toEqual([{ state: 'running', detail: '' }]);
    expect(before.log.map((entry) => entry.text)).toEqual(['running']);
    expect(before.links[0]!.forward.use_bit_per_s).toBe(0);
    expect(before.recoveries).toEqual([]);
  });
});
