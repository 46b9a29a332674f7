import { describe, expect, it } from 'vitest';
import { span } from './fixtures';
import { LayerTimes } from './layerTimes';

describe('LayerTimes', () => {
  it('measures a layer from its first start to its last end over all devices, in any order of arrival', () => {
    const times = new LayerTimes(2);
    times.add(span({ device: 'b', layer: 0, start_s: 1.5, end_s: 4 }));
    times.add(span({ layer: 0, start_s: 1, end_s: 2 }));
    times.add(span({ layer: 1, start_s: 4, end_s: 5 }));
    expect(times.prefill()).toEqual({ request: 0, token: 0, seconds: [3, 1] });
  });

  it('has no time for a layer that was not computed', () => {
    const times = new LayerTimes(2);
    expect([times.prefill(), times.newest()]).toEqual([null, null]);
    times.add(span({ layer: 1, start_s: 4, end_s: 5 }));
    expect(times.prefill()!.seconds).toEqual([NaN, 1]);
    expect(times.newest()).toBeNull();
  });

  it('counts only computation inside the layers and inside a request', () => {
    const times = new LayerTimes(2);
    for (const fields of [{ kind: 'send' }, { layer: -1 }, { layer: 2 }, { token: -1 }] as const)
      times.add(span(fields));
    expect(times.prefill()).toBeNull();
  });

  it('keeps passes of different requests and tokens apart', () => {
    const times = new LayerTimes(1);
    times.add(span({ request: 0, token: 1, start_s: 0, end_s: 1 }));
    times.add(span({ request: 1, token: 1, start_s: 5, end_s: 7 }));
    times.add(span({ request: 1, token: 2, start_s: 9, end_s: 9.5 }));
    expect(times.prefill()).toEqual({ request: 0, token: 1, seconds: [1] });
    expect(times.newest()).toEqual({ request: 1, token: 2, seconds: [0.5] });
  });

  const forty = () => {
    const times = new LayerTimes(2);
    for (let token = 0; token < 40; token += 1)
      times.add(span({ layer: 0, token, start_s: token, end_s: token + 0.25 }));
    return times;
  };

  it('remembers the prefill and the newest twelve passes', () => {
    expect(forty().prefill()!.token).toBe(0);
    const kept = forty(); // Passes 28 to 39 are kept: the second layer completes pass 28 …
    kept.add(span({ layer: 1, token: 28, start_s: 40, end_s: 42 }));
    expect(kept.newest()).toEqual({ request: 0, token: 28, seconds: [0.25, 2] });
    const forgotten = forty(); // … and begins pass 27 anew, which was forgotten.
    forgotten.add(span({ layer: 1, token: 27, start_s: 40, end_s: 42 }));
    expect(forgotten.newest()).toBeNull();
  });
});
