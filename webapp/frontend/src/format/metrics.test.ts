import { describe, expect, it } from 'vitest';
import { metricText, paramText } from './metrics';

describe('texts', () => {
  it('shows false, zero and empty texts as values', () => {
    expect(paramText('params.causal_trim', false)).toBe('false');
    expect(paramText('seed', 0)).toBe('0');
    expect(paramText('params.decode_owner', '')).toBe('""');
    expect(paramText('params.x', null)).toBe('–');
  });

  it('takes units from names', () => {
    expect(paramText('cluster.links[a--b].bit_per_s', 1e8)).toBe('100 Mbit/s');
    expect(paramText('cluster.devices[a].memory_bytes', 2e9)).toBe('2 GB');
    expect(paramText('cluster.devices[a].memory_byte_per_s', 2e9)).toBe('2 GB/s');
    expect(metricText(0.0123, 's')).toBe('12.3 ms');
  });
});
