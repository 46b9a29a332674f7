import { describe, expect, it } from 'vitest';
import type { CanvasColors } from '@/run/charts/colors';
import type { RunData } from '@/run/data/runData';
import { latencyTrack } from './lines';

const token = (index: number, time_s: number) => ({ index, time_s, latency_s: 0.01 });

describe('latencyTrack', () => {
  it('begins a line with every request, and another one only there', () => {
    const tokens = [token(0, 1), token(1, 2), token(2, 3), token(0, 7), token(1, 8), token(2, 9)];
    const data = { tokens: { toArray: () => tokens } } as unknown as RunData;
    const measured = latencyTrack(data, [], { text: '', dim: '' } as CanvasColors, 10).lines[1]!;
    expect(Array.from({ length: measured.length }, (_, at) => measured.beginsAt?.(at))).toEqual([
      false,
      false,
      true,
      false,
    ]);
  });

  it('shows the first tokens where no request has another one', () => {
    const data = { tokens: { toArray: () => [token(0, 1), token(0, 2)] } } as unknown as RunData;
    const colors = { text: '', dim: '' } as CanvasColors;
    const shown = latencyTrack(data, [], colors, 10);
    expect(shown.lines[1]!.length).toBe(2);
    expect(shown.values).toEqual(['token 0: 10 ms']);
    const more = [{ ...token(1, 3), request: 0 }] as unknown as Parameters<typeof latencyTrack>[1];
    expect(latencyTrack(data, more, colors, 10).lines[1]!.length).toBe(0);
  });
});
