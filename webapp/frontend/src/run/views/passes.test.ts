import { describe, expect, it } from 'vitest';
import { cluster, model, span } from '@/run/data/fixtures';
import { RunData } from '@/run/data/runData';
import { passesOf } from './passes';

describe('passesOf', () => {
  const data = new RunData(cluster, model);
  data.apply([
    span({ start_s: 0, end_s: 1, request: 0 }),
    span({ start_s: 1, end_s: 2, request: 0, layer: 1 }),
    span({ kind: 'load', start_s: 2, end_s: 3 }),
    span({ start_s: 3, end_s: 4, request: 1 }),
    span({ start_s: 4.5, end_s: 5, request: 1 }),
  ]);
  const ring = data.device('a')!.lanes.compute;

  it('joins the operations of one step of one request', () => {
    expect(passesOf(ring, 0, 5, 1)).toEqual({
      passes: [
        { request: 0, token: 0, start_s: 0, end_s: 2 },
        { request: 1, token: 0, start_s: 3, end_s: 5 },
      ],
      busy_s: 3.5,
    });
  });

  it('leaves the bubble in which a stage waits for the others to finish the same step', () => {
    expect(passesOf(ring, 0, 5, 0.1).passes.map((pass) => [pass.start_s, pass.end_s])).toEqual([
      [0, 2],
      [3, 4],
      [4.5, 5],
    ]);
    expect(passesOf(ring, 3.5, 4.75, 0.1).busy_s).toBeCloseTo(0.75);
  });
});
