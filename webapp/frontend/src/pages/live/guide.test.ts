import { describe, expect, it } from 'vitest';
import type { Injection, Token } from '@/run/data/runData';
import { guided } from './guide';

const guide = { link: 'desk--hub', bit_per_s: 1e6, device: 'window' };
const side = (set_bit_per_s: number) => ({ set_bit_per_s });

function seen(more: object = {}, bit_per_s = 1e8, changes = 0, failedAt_s: number | null = null) {
  const tokens = Array.from({ length: 9 }, (_, index): Token => ({
    request: 0,
    index,
    token: 1,
    text: '',
    latency_s: 0.005,
    time_s: 0.005 * index,
  }));
  return {
    state: 'running',
    tokens,
    links: [
      {
        name: 'desk--hub',
        other: 'hub--desk',
        a: 'desk',
        b: 'hub',
        changes,
        forward: side(bit_per_s),
        backward: side(bit_per_s),
      },
    ],
    devices: [{ name: 'window', failedAt_s }],
    injections: [],
    recoveries: [],
    time_s: 0.05,
    ...more,
  } as unknown as Parameters<typeof guided>[1];
}
const slowed: Injection = { time_s: 0.021, name: 'link_changed', label: 'desk–hub 1 Mbit/s', by: 'ann' };
const recovery = { device: 'window', how: 'killed', at_s: 0.03, detect_s: 0.1, replan_s: 0.1, reload_s: 0.2 };

describe('the guided run', () => {
  it('lets one look first, and then says which link to slow', () => {
    expect(guided(guide, seen({ state: 'loading' }))).toBeNull();
    expect(guided(guide, seen({ tokens: [] }))).toBeNull();
    const step = guided(guide, seen())!;
    expect([step.name, step.todo]).toEqual(['slow', 'Slow this link: set desk – hub to 1 Mbit/s.']);
    expect(step.text).toContain('A token takes 5 ms');
    expect(step.show).toEqual({ kind: 'link', name: 'desk--hub' });
  });

  it('says what the slow link did, once a token tells', () => {
    const early = guided(guide, seen({ injections: [{ ...slowed, time_s: 0.05 }] }, 1e6, 1))!;
    expect(early.text).toBe('desk – hub carries 1 Mbit/s now: wait for the next token.');
    const other = guided(guide, seen({ injections: [{ ...slowed, time_s: 0.05 }] }, 2.4e5, 1))!;
    expect(other.text).toContain('carries 240 kbit/s now'); // what was set, not what was proposed
    const step = guided(guide, seen({ injections: [slowed] }, 1e6, 1))!;
    expect(step.text).toBe('desk–hub 1 Mbit/s: a token still takes 5 ms.');
    expect([step.name, step.todo]).toEqual(['slowed', 'Undo it, and watch the tokens again.']);
  });

  it('then names the board to drop, and says how the text went on', () => {
    const step = guided(guide, seen({ injections: [slowed] }, 1e8, 2))!;
    expect([step.name, step.todo]).toEqual(['drop', 'Now drop that board: window.']);
    expect(step.show).toEqual({ kind: 'device', name: 'window' });
    expect(guided(guide, seen({}, 1e8, 0, 0.03))!.name).toBe('dropped'); // without the link before
    const going = { recoveries: [{ ...recovery, rebuild_s: null }] };
    expect(guided(guide, seen(going, 1e8, 2, 0.03))!.name).toBe('dropped');
    const done = guided(guide, seen({ recoveries: [{ ...recovery, rebuild_s: 0.1 }] }, 1e8, 2))!;
    expect(done.text).toContain('went on 500 ms after window had gone');
  });

  it('ends with the report of a run that finished', () => {
    expect(guided(guide, seen({ state: 'finished' }))!.todo).toBe('Open the report.');
    expect(guided(guide, seen({ state: 'failed' }))).toBeNull();
  });
});
