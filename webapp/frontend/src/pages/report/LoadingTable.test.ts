import { describe, expect, it } from 'vitest';
import { parkedOf, thresholdsOf } from './LoadingTable';

const device = {
  name: 'd0',
  num_layers: 4,
  slots: 1,
  stages: [],
  loaded_bytes: 1,
  loader_busy_s: 1,
  loader_idle_s: 1,
  uncovered_s: 0,
  thresholds: [],
  rows_parked: [],
};

describe('LoadingTable', () => {
  it('names the numbers of tokens from which on a device streamed more', () => {
    const reached = { time_s: 1, max_tokens: 74, attention: 0, ffn: 1 };
    expect(thresholdsOf(device)).toBe('–');
    expect(
      thresholdsOf({
        ...device,
        thresholds: [
          { ...reached, tokens: 25 },
          { ...reached, tokens: 75 },
        ],
      }),
    ).toBe('25, 75 tokens');
  });

  it('names the most rows that were parked and their device', () => {
    const parked = [12, 22, 0].map((rows) => ({ time_s: 1, target: 'd1', rows }));
    expect(parkedOf(device)).toBe('–');
    expect(parkedOf({ ...device, rows_parked: parked })).toBe('22 on d1');
  });
});
