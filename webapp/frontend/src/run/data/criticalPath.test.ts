import { describe, expect, it } from 'vitest';

import { criticalPath } from './criticalPath';
import { cluster, model, span } from './fixtures';
import { RunData } from './runData';

/** A computes [0, 1], calls send at 1, which waits behind another message until 2 and arrives at 3; b computes [3, 5]
 * and answers within [5, 6]. a is idle until 6 and computes [6.5, 7]. */
function run(): RunData {
  const data = new RunData(cluster, model);
  data.apply([
    span({ device: 'a', start_s: 0, end_s: 1 }),
    span({ device: 'a', kind: 'send', peer: 'b', start_s: 0.5, end_s: 2, message: 0 }),
    span({ device: 'a', kind: 'send', peer: 'b', start_s: 1, end_s: 2.9, message: 1 }),
    span({ device: 'b', kind: 'recv', peer: 'a', start_s: 0.5, end_s: 2.1, message: 0 }),
    span({ device: 'b', kind: 'recv', peer: 'a', start_s: 2, end_s: 3, message: 1 }),
    span({ device: 'b', kind: 'wait', start_s: 0, end_s: 3 }),
    span({ device: 'b', start_s: 3, end_s: 5 }),
    span({ device: 'b', kind: 'send', peer: 'a', start_s: 5, end_s: 5.8, message: 0 }),
    span({ device: 'a', kind: 'recv', peer: 'b', start_s: 5, end_s: 6, message: 0 }),
    span({ device: 'a', kind: 'wait', start_s: 1, end_s: 6 }),
    span({ device: 'a', start_s: 6.5, end_s: 7 }),
  ]);
  return data;
}

const pieces = (data: RunData, start_s: number, end_s: number) =>
  criticalPath(data.devices, 0, start_s, end_s).map(
    ({ device, lane, start_s: from, end_s: to }) => `${'ab'[device]} ${lane} ${from}-${to}`,
  );

describe('criticalPath', () => {
  it('goes back through what each activity waited for, and from a message to the call of its send', () => {
    expect(pieces(run(), 0, 7)).toEqual([
      'a compute 6.5-7',
      'a wait 6-6.5',
      'a recv 5-6',
      'b compute 3-5',
      'b recv 1-3',
      'a compute 0-1',
    ]);
  });

  it('covers the asked time without a gap, also where it begins within an activity', () => {
    const found = criticalPath(run().devices, 0, 0.25, 7.5);
    expect(found[0]).toMatchObject({ lane: 'wait', start_s: 7, end_s: 7.5 });
    expect(found.at(-1)).toMatchObject({ lane: 'compute', start_s: 0.25, end_s: 1 });
    for (let at = 1; at < found.length; at += 1) expect(found[at]!.end_s).toBe(found[at - 1]!.start_s);
  });

  it('ends where older activities are not kept any more', () => {
    const data = new RunData(cluster, model, 0);
    for (let at = 0; at < 70; at += 1) data.apply([span({ start_s: at, end_s: at + 1 })]);
    const found = criticalPath(data.devices, 0, 0, 70);
    expect(found).toHaveLength(64);
    expect(found.at(-1)).toEqual({ device: 0, lane: 'compute', start_s: 6, end_s: 7 });
  });

  it('is time of waiting where no activity is known', () => {
    expect(pieces(new RunData(cluster, model), 1, 2)).toEqual(['a wait 1-2']);
  });
});
