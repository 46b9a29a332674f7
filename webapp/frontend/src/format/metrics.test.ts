import { describe, expect, it } from 'vitest';
import { marginText, metricText, paramText, paramTexts } from './metrics';

describe('texts', () => {
  it('shows false, zero and empty texts as values', () => {
    expect(paramText('params.causal_trim', false)).toBe('false');
    expect(paramText('seed', 0)).toBe('0');
    expect(paramText('params.decode_owner', '')).toBe('""');
    expect(paramText('params.x', null)).toBe('–');
  });

  it('has as many digits as tell the values of one parameter apart', () => {
    expect(paramTexts('a.bit_per_s', [1e8, 1e7, 1e8])).toEqual(['100 Mbit/s', '10 Mbit/s', '100 Mbit/s']);
    expect(paramTexts('a.bit_per_s', [100.1e6, 100.2e6])).toEqual(['100.1 Mbit/s', '100.2 Mbit/s']);
    expect(paramTexts('a.delay_s', [0.0100004, 0.01])).toEqual(['10.0004 ms', '10 ms']);
    expect(paramTexts('a.rate_per_s', [12345, 12346])).toEqual(['12345 /s', '12346 /s']);
  });

  it('quotes a text that reads like another value', () => {
    expect(paramTexts('a.b', [null, '–', 'x'])).toEqual(['–', '"–"', 'x']);
    expect(paramTexts('a.b', [true, 'true', 5, '5'])).toEqual(['true', '"true"', '5', '"5"']);
    expect(paramTexts('a.b', [null, '–', '"–"'])).toEqual(['–', '"–"', String.raw`"\"–\""`]);
  });

  it('says lists and objects in words', () => {
    expect(paramText('scenario.changes', [])).toBe('none');
    expect(paramText('ratio', [1, 2.5])).toBe('1, 2.5');
    const changes = [
      { kind: 'drop_device', at_s: 0.5, device: 'desk' },
      { kind: 'set_rate', at_s: 1, link: 'a--b', bit_per_s: 5e6 },
    ];
    expect(paramText('scenario.changes', changes)).toBe(
      'kind drop_device, at 500 ms, device desk; kind set_rate, at 1 s, link a--b, rate 5 Mbit/s',
    );
    expect(paramText('plan', null)).toBe('–');
    expect(paramTexts('p', [[1, 2], '1, 2'])).toEqual(['1, 2', '"1, 2"']);
    expect(paramTexts('p', [['a, b'], ['a', 'b']])).toEqual(['["a, b"]', '["a","b"]']);
  });

  it('gives the margin of a mean its own unit, and none where it is nothing', () => {
    expect(marginText(0.0004, (value) => metricText(value, 's'))).toBe(' ± 400 µs');
    expect(marginText(0, (value) => metricText(value, 's'))).toBe(' ± 0');
  });

  it('takes units from names', () => {
    expect(paramText('cluster.links[a--b].bit_per_s', 1e8)).toBe('100 Mbit/s');
    expect(paramText('cluster.devices[a].memory_bytes', 2e9)).toBe('2 GB');
    expect(paramText('cluster.devices[a].memory_byte_per_s', 2e9)).toBe('2 GB/s');
    expect(paramText('workload.rate_per_s', 4)).toBe('4 /s');
    expect(paramText('workload.gap_s', 4)).toBe('4 s');
    expect(metricText(0.0123, 's')).toBe('12.3 ms');
  });
});
