import { describe, expect, it } from 'vitest';
import type { Mark } from '@/api/types';
import { countsOf, HeadMap, PRUNED } from './headMap';

const mark = (name: string, facts: Mark['facts'], time_s = 1): Mark => ({ time_s, name, device: 'a', facts });

describe('HeadMap', () => {
  it('shows which device computes which head, what was pruned, and what moved after a change', () => {
    const heads = new HeadMap();
    heads.apply(
      mark('heads', {
        layer: 1,
        owner: 0,
        device_of: [0, 1, PRUNED, 1],
        scores: [0.5, 0.4, null, 0.1],
        hits: 1,
        misses: 3,
        measured: 2,
        t_collab_s: 0.01,
        t_max_s: 0.02,
      }),
    );
    heads.apply(
      mark(
        'reallocated',
        {
          layer: 1,
          owner: 0,
          reason: 'b failed',
          device_of_before: [0, 1, PRUNED, 1],
          device_of: [0, 0, PRUNED, 0],
        },
        2,
      ),
    );
    heads.apply(
      mark('heads', {
        layer: 0,
        owner: 0,
        device_of: [0, 0, 0, 0],
        scores: [1, 1, 1, 1],
        t_collab_s: null,
        t_max_s: null,
      }),
    );
    const [first, second] = heads.list();
    expect(first).toMatchObject({ layer: 0, collab_s: null, deadline_s: null });
    expect(second).toMatchObject({
      deviceOf: [0, 0, PRUNED, 0],
      reason: 'b failed',
      time_s: 2,
      deadline_s: 0.02,
    });
    expect([...second!.moved]).toEqual([1, 3]);
  });

  it('counts kept and lent heads, and look-ups of the whole run once its report is there', () => {
    const heads = new HeadMap();
    heads.apply(
      mark('heads', { layer: 0, owner: 1, device_of: [1, 0, PRUNED, 2], hits: 1, misses: 3, measured: 2 }),
    );
    const [row] = heads.list();
    expect(countsOf(row!)).toEqual({ kept: 3, lent: 2, hits: 1, misses: 3, measured: 2 });
    const block = { kept: 4, lent: 0, hits: 10, misses: 6, measured: 5 };
    expect(countsOf(row!, block)).toEqual({ kept: 3, lent: 2, hits: 10, misses: 6, measured: 5 });
  });
});
