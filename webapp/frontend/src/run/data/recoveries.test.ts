import { describe, expect, it } from 'vitest';
import type { Mark } from '@/api/types';
import { RunData } from './runData';
import { cluster, model } from './fixtures';
import { Recoveries } from './recoveries';

const mark = (time_s: number, name: string, device = '', facts: Record<string, unknown> = {}): Mark => ({
  time_s,
  name,
  device,
  facts,
});
const plan = { version: 1, strategy: 'gpipe', holdings: [], work: [], layout: { kind: 'single', device: 0 } };

describe('Recoveries', () => {
  it('has none for a device that was frozen and went on before anybody missed it', () => {
    const recoveries = new Recoveries();
    for (const one of [mark(1, 'device_frozen', 'b'), mark(1.2, 'device_joined', 'b')]) recoveries.apply(one);
    expect(recoveries.list).toEqual([]);
    recoveries.apply(mark(2, 'device_joined', 'b'));
    expect(recoveries.list).toHaveLength(1);
  });

  it('divides a recovery into detecting, planning, reloading and the way to the next token', () => {
    const recoveries = new Recoveries();
    const marks = [
      mark(0.5, 'token_emitted'),
      mark(1, 'device_lost', 'b'),
      mark(1.25, 'loss_detected', 'b', { how: 'killed', since_s: 1 }),
      mark(1.5, 'replanned', '', { reason: 'b failed.', plan }),
      mark(1.6, 'reloaded', 'a'),
      mark(2, 'reloaded', 'c'),
      mark(3, 'token_emitted'),
      mark(4, 'token_emitted'),
    ];
    for (const one of marks) recoveries.apply(one);
    expect(recoveries.list).toEqual([
      {
        device: 'b',
        how: 'killed',
        at_s: 1,
        known_s: 1.25,
        detect_s: 0.25,
        replanned: true,
        replan_s: 0.25,
        reload_s: 0.5,
        rebuild_s: 1,
        reason: 'b failed.',
      },
    ]);
  });

  it('counts reloading until the last device is ready, and the next token only after that', () => {
    const recoveries = new Recoveries();
    for (const one of [
      mark(1, 'loss_detected', 'b', { how: 'killed', since_s: 1 }),
      mark(2, 'replanned', '', { reason: 'b failed.', plan }),
      mark(4, 'reloaded', 'c'),
      mark(3, 'reloaded', 'a'),
      mark(4, 'token_emitted'),
      mark(6, 'token_emitted'),
    ])
      recoveries.apply(one);
    expect(recoveries.list[0]).toMatchObject({ replan_s: 1, reload_s: 2, rebuild_s: 2 });
  });

  it('has no plan for a strategy that continued by itself', () => {
    const recoveries = new Recoveries();
    for (const one of [
      mark(1, 'loss_detected', 'b', { how: 'killed', since_s: 0.5 }),
      mark(1.5, 'token_emitted'),
    ])
      recoveries.apply(one);
    expect(recoveries.list[0]).toMatchObject({ replanned: false, replan_s: null, rebuild_s: 0.5 });
  });
});

describe('RunData', () => {
  it('takes the new plan at the moment it is made, as a marked event with its reason', () => {
    const data = new RunData(cluster, model);
    data.apply([{ type: 'mark', ...mark(2, 'replanned', '', { reason: 'b failed.', plan }) }]);
    expect(data.plans.newest).toEqual(plan);
    expect(data.plans.replanned).toEqual({ time_s: 2, reason: 'b failed.' });
    expect(data.injections).toMatchObject([
      { time_s: 2, name: 'replanned', label: expect.stringContaining('b failed.') },
    ]);
  });

  it('acknowledges delay, loss, slowing, freezing and joining', () => {
    const data = new RunData(cluster, model);
    const apply = (one: Mark) => data.apply([{ type: 'mark', ...one }]);
    apply(mark(1, 'link_changed', '', { link: 'a--b', direction: 'backward', delay_s: 0.02 }));
    apply(mark(1, 'link_changed', '', { link: 'a--b', direction: 'both', loss_frac: 0.1 }));
    expect(data.links[0]).toMatchObject({
      changes: 2,
      forward: { delay_s: 0, loss_frac: 0.1 },
      backward: { delay_s: 0.02, loss_frac: 0.1 },
    });
    apply(mark(2, 'device_changed', 'b', { factor: 3 }));
    apply(mark(3, 'device_frozen', 'b'));
    apply(mark(5, 'loss_detected', 'b', { how: 'frozen', since_s: 3 }));
    expect(data.device('b')).toMatchObject({ slowdown: 3, frozenAt_s: 3, failedAt_s: 5, changes: 2 });
    apply(mark(6, 'device_joined', 'b'));
    expect(data.device('b')).toMatchObject({ frozenAt_s: null, failedAt_s: null, changes: 3 });
  });
});
