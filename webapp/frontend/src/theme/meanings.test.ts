import { describe, expect, it } from 'vitest';
import { deviceColors } from './deviceColors';
import { spanColors } from './spanColors';

/** Red, green and blue of a colour, each from 0 to 255. */
const channels = (hex: string) => [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16));

function distance(one: string, other: string): number {
  const [a, b] = [channels(one), channels(other)];
  return Math.hypot(...a.map((value, at) => value - b[at]!));
}

describe('a colour', () => {
  it('means a device or a kind of span, not both', () => {
    const near = deviceColors.flatMap((device) =>
      Object.entries(spanColors)
        .filter(([, color]) => distance(device, color) < 40)
        .map(([kind]) => `${device} is near ${kind}`),
    );
    expect(near).toEqual([]);
  });

  it('means one device', () => {
    expect(new Set(deviceColors).size).toBe(deviceColors.length);
  });
});
