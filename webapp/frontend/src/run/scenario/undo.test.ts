import { describe, expect, it } from 'vitest';
import type { ClusterSpec, Mark } from '@/api/types';
import { newestToUndo, undoOf } from './undo';

const cluster = {
  devices: [{ name: 'a' }, { name: 'b' }],
  links: [
    { a: 'a', b: 'b', parallel: 1, bit_per_s: 1e8, reverse_bit_per_s: 2e7, delay_s: 0.001, loss_frac: 0 },
  ],
} as unknown as ClusterSpec;

const mark = (name: string, facts: object, device = ''): Mark => ({
  time_s: 1,
  name,
  device,
  facts: { by: 'ann', ...facts },
});
const rate = (bit_per_s: number, direction = 'both') =>
  mark('link_changed', { link: 'a--b', bit_per_s, direction });

describe('undoOf', () => {
  it('restores what was drawn, each way of a link for itself where they differ', () => {
    expect(undoOf([rate(1e6)], 0, cluster)).toEqual([
      { kind: 'set_rate', link: 'a--b', bit_per_s: 1e8, direction: 'forward' },
      { kind: 'set_rate', link: 'a--b', bit_per_s: 2e7, direction: 'backward' },
    ]);
    const delay = mark('link_changed', { link: 'b--a', delay_s: 0.5, direction: 'both' });
    expect(undoOf([delay], 0, cluster)).toEqual([
      { kind: 'set_delay', link: 'b--a', delay_s: 0.001, direction: 'both' },
    ]);
  });

  it('restores what the change before it had set, of the same kind and way', () => {
    const loss = mark('link_changed', { link: 'a--b', loss_frac: 0.1, direction: 'both' });
    const marks = [rate(5e6, 'forward'), loss, rate(1e6, 'forward')];
    expect(undoOf(marks, 2, cluster)).toEqual([
      { kind: 'set_rate', link: 'a--b', bit_per_s: 5e6, direction: 'forward' },
    ]);
    const slow = [mark('device_changed', { factor: 2 }, 'b'), mark('device_changed', { factor: 9 }, 'b')];
    expect(undoOf(slow, 1, cluster)).toEqual([{ kind: 'slow_device', device: 'b', factor: 2 }]);
    expect(undoOf(slow, 0, cluster)).toEqual([{ kind: 'slow_device', device: 'b', factor: 1 }]);
  });

  it('brings back what was cut, dropped or frozen, and drops nothing that joined', () => {
    expect(undoOf([mark('link_down', { link: 'a--b' })], 0, cluster)).toEqual([
      { kind: 'link_up', link: 'a--b' },
    ]);
    for (const name of ['device_lost', 'device_frozen'])
      expect(undoOf([mark(name, {}, 'b')], 0, cluster)).toEqual([{ kind: 'join_device', device: 'b' }]);
    expect(undoOf([mark('device_joined', {}, 'b')], 0, cluster)).toEqual([]);
  });
});

describe('newestToUndo', () => {
  it('goes back one change at a time, past those that it made itself', () => {
    const first = [rate(5e6), mark('link_down', { link: 'a--b' })];
    expect(newestToUndo(first, cluster, [])).toBe(1);
    const undone = [{ at: 1, marks: 2, commands: 1 }];
    const then = [...first, mark('replanned', { by: '' }), mark('link_up', { link: 'a--b' })];
    expect(newestToUndo(then, cluster, undone)).toBe(0);
    expect(newestToUndo([...then, rate(1e6)], cluster, undone)).toBe(4);
  });

  it('leaves alone what the scenario and the run did', () => {
    expect(newestToUndo([mark('link_down', { link: 'a--b', by: '' })], cluster, [])).toBe(-1);
    expect(newestToUndo([], cluster, [])).toBe(-1);
  });
});
