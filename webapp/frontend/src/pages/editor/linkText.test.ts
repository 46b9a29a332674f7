import { describe, expect, it } from 'vitest';
import { star } from '@/cluster/fixtures';
import { conditionsOf, extrasOf } from './linkText';

const link = {
  ...star().spec.links[0]!,
  bit_per_s: 30e6,
  reverse_bit_per_s: 50e6,
  delay_s: 0.002,
  reverse_delay_s: null,
  jitter_s: 0,
  loss_frac: 0,
  reverse_loss_frac: 0.01,
};

describe('a link', () => {
  it('says all of its conditions when asked, also those that are zero', () => {
    expect(conditionsOf(link)).toBe(
      'device-1 – switch-1\nrate 30 ⇄ 50 Mbit/s\ndelay 2 ms\njitter 0 s\npacket loss 0 ⇄ 1 %',
    );
  });

  it('has beside its rate what is not zero in some direction', () => {
    expect(extrasOf(link)).toEqual(['2 ms', '0 ⇄ 1 % packet loss']);
  });
});
