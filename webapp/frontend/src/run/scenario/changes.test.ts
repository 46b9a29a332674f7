import { describe, expect, it } from 'vitest';
import type { Mark } from '@/api/types';
import { cluster } from '@/run/data/fixtures';
import { changeOf, inOrder, rateCurve, valueOf, withKind, withValue } from './changes';

const mark = (name: string, facts: Mark['facts'], device = ''): Mark => ({ time_s: 2, name, device, facts });

describe('changeOf', () => {
  it('is the change that was made, at the time at which it came into force', () => {
    const link = 'a--b';
    expect(
      changeOf(mark('link_changed', { link, direction: 'forward', bit_per_s: 5e6, in_force: [] })),
    ).toEqual({ kind: 'set_rate', at_s: 2, link, bit_per_s: 5e6, direction: 'forward' });
    expect(changeOf(mark('link_changed', { link, delay_s: 0, direction: 'both' }))).toMatchObject({
      kind: 'set_delay',
      delay_s: 0,
    });
    expect(changeOf(mark('link_down', { link }))).toEqual({ kind: 'link_down', at_s: 2, link });
    expect(changeOf(mark('device_changed', { factor: 3 }, 'b'))).toEqual({
      kind: 'slow_device',
      at_s: 2,
      device: 'b',
      factor: 3,
    });
    expect(changeOf(mark('device_lost', {}, 'b'))).toEqual({ kind: 'drop_device', at_s: 2, device: 'b' });
    expect(changeOf(mark('replanned', { reason: 'b failed.' }))).toBeNull();
  });
});

describe('editing', () => {
  const rate = { kind: 'set_rate', at_s: 1, link: 'a--b', bit_per_s: 3.6e7, direction: 'both' } as const;

  it('shows and takes numbers in the units of a person', () => {
    expect(valueOf(rate)).toBe(36);
    expect(withValue(rate, 5)).toMatchObject({ bit_per_s: 5e6 });
    expect(withValue({ kind: 'set_loss', at_s: 1, link: 'a--b', loss_frac: 0, direction: 'both' }, 250)).toMatchObject({ loss_frac: 0.99 }); // oxfmt-ignore
  });

  it('keeps time and link when the kind changes, and takes a device where one is needed', () => {
    expect(withKind(rate, 'link_down', cluster)).toEqual({ kind: 'link_down', at_s: 1, link: 'a--b' });
    expect(withKind(rate, 'drop_device', cluster)).toEqual({ kind: 'drop_device', at_s: 1, device: 'a' });
  });

  it('makes a curve of equal factors with both ends', () => {
    const curve = rateCurve({
      link: 'a--b',
      from_s: 1,
      to_s: 3,
      from_bit_per_s: 1e8,
      to_bit_per_s: 1e6,
      steps: 3,
    });
    expect(curve.map((one) => [one.at_s, 'bit_per_s' in one && one.bit_per_s])).toEqual([
      [1, 1e8],
      [2, 1e7],
      [3, 1e6],
    ]);
  });

  it('is in the order of time', () => {
    const later = { ...rate, at_s: 0.5 };
    expect(inOrder([rate, later])).toEqual([later, rate]);
  });
});
