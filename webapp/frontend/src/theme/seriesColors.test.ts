import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { seriesColors } from './seriesColors';

const css = readFileSync(join(import.meta.dirname, 'tokens.css'), 'utf8');
const surfaces = [...css.matchAll(/--loom-surface: (#[0-9a-f]{6})/g)].map(([, color]) => color!);

/** Relative luminance, WCAG 2.2. */
function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
}

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

describe('the colours of series', () => {
  it('are told apart from the surface in light and in dark', () => {
    expect(surfaces).toHaveLength(2);
    const weak = seriesColors.flatMap((color) =>
      surfaces.filter((surface) => contrast(color, surface) < 3).map((surface) => `${color} on ${surface}`),
    );
    expect(weak).toEqual([]);
  });

  it('are all different', () => {
    expect(new Set(seriesColors).size).toBe(seriesColors.length);
  });
});
