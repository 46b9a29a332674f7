import { describe, expect, it } from 'vitest';
import { aboutState, activity, busyIn, knownInstant_s, stateText } from './activity';
import { cluster, model, span } from './fixtures';
import { Names, SpanRing } from './rings';
import { RunData } from './runData';

describe('busyIn', () => {
  it('is the length of the union of the spans inside the window', () => {
    // Oracle: count the cells of a grid that some span covers; spans end in order, as they arrive.
    const spans = [
      [0, 3],
      [2, 5],
      [2, 5],
      [7, 9],
      [8, 10],
      [14, 15],
    ] as const;
    const ring = new SpanRing(new Names(), 64);
    for (const [start_s, end_s] of spans) ring.push(span({ start_s, end_s }));
    for (let from = 0; from < 16; from += 1) {
      for (let to = from + 1; to <= 16; to += 1) {
        let covered = 0;
        for (let cell = from; cell < to; cell += 1)
          covered += Number(spans.some(([start, stop]) => start <= cell && cell < stop));
        expect(busyIn(ring, from, to)).toBe(covered);
      }
    }
  });
});

describe('activity', () => {
  const computing = () => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ kind: 'wait', start_s: 0, end_s: 0.9 }),
      span({ kind: 'send', start_s: 0.5, end_s: 0.8 }),
      span({ kind: 'compute', start_s: 0, end_s: 0.5 }),
      span({ device: 'b', kind: 'wait', start_s: 0, end_s: 1 }),
    ]);
    return data;
  };

  it('is what covers the instant; shares are of the window before it', () => {
    const data = computing();
    const { state, shares } = activity(data.device('a')!, 0.4, 0.4);
    expect(state).toBe('computing');
    expect(shares.compute).toBeCloseTo(1);
    expect(activity(data.device('a')!, 0.6, 1).state).toBe('sending');
    expect(activity(data.device('a')!, 0.85, 1).state).toBe('waiting');
    expect(activity(data.device('b')!, 1, 1).state).toBe('waiting');
  });

  it('is not idle where it was dropped', () => {
    const data = new RunData(cluster, model, 0); // 64 spans in a lane
    for (let second = 0; second < 70; second += 1)
      data.apply([span({ kind: 'compute', start_s: second, end_s: second + 0.5 })]);
    const at = (of: RunData, time_s: number) => activity(of.device('a')!, time_s, 1).state;
    expect(data.keptFrom_s).toBe(6);
    expect([at(data, 5.25), at(data.at(5.25), 5.25), at(data, 6.25)]).toEqual([
      'not kept',
      'not kept',
      'computing',
    ]);
    expect(new RunData(cluster, model).keptFrom_s).toBe(0);
  });

  it('is unknown after the last span, and failed or frozen whatever the spans', () => {
    const data = computing();
    expect(activity(data.device('b')!, 9, 1).state).toBe('no data yet');
    data.apply([{ type: 'mark', time_s: 1, name: 'device_frozen', device: 'b', facts: {} }]);
    expect(activity(data.device('b')!, 1, 1).state).toBe('frozen');
    data.apply([{ type: 'mark', time_s: 1, name: 'device_lost', device: 'a', facts: {} }]);
    expect(activity(data.device('a')!, 1, 1).state).toBe('failed');
  });
});

describe('a device whose process is silent', () => {
  const silent = (): RunData => {
    const data = new RunData(cluster, model);
    data.apply([
      span({ end_s: 0.5 }),
      span({ device: 'b', end_s: 4 }),
      { type: 'clock', time_s: 4, wall_s: 4, silent_s: { a: 7.9 } },
    ]);
    return data;
  };
  const known = (data: RunData) => {
    const device = data.devices[0]!;
    return { ...device, activity: activity(device, 0.4, 0.2) };
  };

  it('is said to make none, whatever it did last', () => {
    const device = known(silent());
    expect(device.activity.state).toBe('silent');
    expect(stateText(device)).toBe('silent for 7 s');
    expect(aboutState(device)).toContain('sent nothing for 7 s of wall time');
  });

  it('is frozen or failed where that is known', () => {
    const data = silent();
    data.devices[0]!.frozenAt_s = 1.5;
    expect(stateText(known(data))).toBe('frozen since 1.50 s');
    data.devices[0]!.failedAt_s = 2;
    expect(stateText(known(data))).toBe('failed at 2.00 s');
  });

  it('does not hold back what is shown of the others', () => {
    const data = silent();
    expect(knownInstant_s(data, 10)).toBe(4);
    data.apply([{ type: 'clock', time_s: 4, wall_s: 4 }]);
    expect(knownInstant_s(data, 10)).toBe(0.5);
  });
});
