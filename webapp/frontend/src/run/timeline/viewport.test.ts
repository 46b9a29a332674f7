import { describe, expect, it } from 'vitest';
import { RunData } from '@/run/data/runData';
import { cluster, model, span } from '@/run/data/fixtures';
import { hitTest, laneTop, roomy } from './layout';
import { steer } from './pointer';
import { shifted, tickLabel, tickStep, Viewport } from './viewport';

describe('Viewport', () => {
  it('keeps its right edge at now while it follows', () => {
    const viewport = new Viewport(true);
    viewport.show(1, 5);
    viewport.follow(5.5);
    expect([viewport.start_s, viewport.end_s]).toEqual([4.5, 5.5]);
  });

  it('does not move by less than a pixel, and then by all that it was behind', () => {
    const viewport = new Viewport(true);
    viewport.show(1, 5);
    const { version } = viewport;
    for (const now_s of [5.0001, 5.0003]) viewport.follow(now_s);
    expect([viewport.version, viewport.end_s]).toEqual([version, 5]);
    viewport.follow(5.0006);
    expect([viewport.version, viewport.end_s]).toEqual([version + 1, 5.0006]);
  });

  it('shows a second before the run has begun, and then all of it', () => {
    const viewport = new Viewport(true);
    viewport.follow(0);
    expect([viewport.start_s, viewport.end_s]).toEqual([0, 1]);
    viewport.follow(0.02);
    expect([viewport.start_s, viewport.end_s]).toEqual([0, 0.02]);
  });

  it('stays near the run, however far somebody pans or zooms out', () => {
    const viewport = new Viewport(false);
    viewport.show('all', 20);
    for (let time = 0; time < 50; time += 1) viewport.zoom(1.5, 10);
    expect([viewport.start_s, viewport.end_s]).toEqual([-60, 60]);
    viewport.show('all', 20);
    for (let time = 0; time < 50; time += 1) viewport.pan(15);
    expect([viewport.start_s, viewport.end_s]).toEqual([40, 60]);
    for (let time = 0; time < 50; time += 1) viewport.pan(-15);
    expect([viewport.start_s, viewport.end_s]).toEqual([-60, -40]);
    viewport.show(10, 0.02);
    expect(viewport.end_s - viewport.start_s).toBe(10);
  });

  it('stands still once somebody pans, until it is resumed', () => {
    const viewport = new Viewport(true);
    viewport.show(1, 5);
    viewport.pan(-2);
    viewport.follow(9);
    expect(viewport.following).toBe(false);
    expect([viewport.start_s, viewport.end_s]).toEqual([2, 3]);
    viewport.resume(9);
    expect(viewport.end_s).toBe(9);
  });

  it('stays where it is when a view of everything is paused', () => {
    const viewport = new Viewport(true);
    viewport.follow(4);
    viewport.pause();
    viewport.follow(8);
    expect([viewport.start_s, viewport.end_s]).toEqual([0, 4]);
  });

  it('zooms around the pointer, and around now while it follows', () => {
    const still = new Viewport(false);
    still.show('all', 10);
    still.zoom(0.5, 2);
    expect([still.start_s, still.end_s]).toEqual([1, 6]);
    const live = new Viewport(true);
    live.show('all', 10);
    live.zoom(0.5, 2);
    expect([live.start_s, live.end_s]).toEqual([5, 10]);
  });

  it('counts what a person does, and not what the run does', () => {
    const viewport = new Viewport(true);
    viewport.follow(5);
    expect([viewport.touches, viewport.version]).toEqual([0, 1]);
    viewport.pan(1);
    viewport.point(2);
    viewport.point(2);
    expect(viewport.touches).toBe(2);
  });

  it('shows all of a recording however often it is asked', () => {
    const viewport = new Viewport(false);
    viewport.follow(3);
    viewport.follow(7);
    expect([viewport.start_s, viewport.end_s]).toEqual([0, 7]);
  });
});

describe('a marked stretch', () => {
  it('is what the viewport shows next, in whichever direction it was marked', () => {
    for (const [from_s, to_s] of [
      [2, 3.5],
      [3.5, 2],
    ] as const) {
      const viewport = new Viewport(true);
      viewport.show('all', 10);
      viewport.mark({ from_s, to_s });
      expect([viewport.start_s, viewport.end_s]).toEqual([0, 10]);
      viewport.showMarked();
      expect([viewport.start_s, viewport.end_s]).toEqual([2, 3.5]);
      expect([viewport.following, viewport.window, viewport.marked]).toEqual([false, null, null]);
      viewport.follow(12);
      expect([viewport.start_s, viewport.end_s]).toEqual([2, 3.5]);
      viewport.show('all', 12);
      expect([viewport.start_s, viewport.end_s]).toEqual([0, 12]);
    }
  });

  it('changes nothing when it was given up', () => {
    const viewport = new Viewport(true);
    viewport.show(1, 10);
    viewport.mark({ from_s: 9.2, to_s: 9.4 });
    viewport.mark(null);
    viewport.showMarked();
    viewport.follow(11);
    expect([viewport.start_s, viewport.end_s, viewport.following]).toEqual([10, 11, true]);
  });

  it('is at least so long that it can be shown', () => {
    const viewport = new Viewport(false);
    viewport.mark({ from_s: 4, to_s: 4 });
    viewport.showMarked();
    expect(viewport.end_s).toBeGreaterThan(viewport.start_s);
  });

  it('is the same stretch for a run whose times are later', () => {
    const viewport = new Viewport(false);
    viewport.show('all', 10);
    const later = shifted(viewport, 100);
    later.mark({ from_s: 103, to_s: 102 });
    expect(viewport.marked).toEqual({ from_s: 3, to_s: 2 });
    expect(later.marked).toEqual({ from_s: 103, to_s: 102 });
    later.showMarked();
    expect([viewport.start_s, viewport.end_s]).toEqual([2, 3]);
    expect([later.start_s, later.end_s, later.marked]).toEqual([102, 103, null]);
  });

  it('is painted with the next frame, as all that a person does', () => {
    const viewport = new Viewport(false);
    viewport.mark({ from_s: 1, to_s: 2 });
    expect(viewport.touches).toBe(1);
    viewport.mark(null);
    expect(viewport.touches).toBe(2);
  });
});

describe('keys on the axis', () => {
  const steered = (...keys: string[]): number[] => {
    const viewport = new Viewport(false);
    viewport.mark({ from_s: 2, to_s: 5 });
    viewport.showMarked();
    for (const key of keys) expect(steer(viewport, key, 8)).toBe(true);
    return [viewport.start_s, viewport.end_s];
  };

  it('pan by a tenth, zoom around the middle, and show all', () => {
    expect(steered('ArrowRight')[0]).toBeCloseTo(2.3);
    expect(steered('ArrowLeft')[1]).toBeCloseTo(4.7);
    expect(steered('+')).toEqual([2.5, 4.5]);
    expect(steered('-')[1]).toBeCloseTo(5.75);
    expect(steered('+', '-')[0]).toBeCloseTo(2);
    expect(steered('0')).toEqual([0, 8]);
  });

  it('do nothing else', () => {
    const viewport = new Viewport(true);
    expect(steer(viewport, 'a', 8)).toBe(false);
    expect(viewport.touches).toBe(0);
  });
});

describe('ticks', () => {
  it('are round and as fine as they need to be', () => {
    expect(tickStep(10, 10)).toBe(1);
    expect(tickStep(0.9, 8)).toBeCloseTo(0.2);
    expect(tickLabel(2, 1)).toBe('2 s');
    expect(tickLabel(0.25, 0.05)).toBe('250 ms');
    expect(tickLabel(0.000_12, 0.000_02)).toBe('120 µs');
  });
});

describe('hitTest', () => {
  const data = new RunData(cluster, model);
  data.apply([
    span({ start_s: 0, end_s: 4, name: 'long' }),
    span({ start_s: 1, end_s: 2, name: 'short' }),
    span({ device: 'b', kind: 'send' }),
  ]);
  const middle = (device: number, lane: number) => laneTop(device, lane, roomy) + roomy.laneHeight / 2;

  it('finds the shortest span under the pointer', () => {
    expect(hitTest(data, roomy, middle(0, 0), 1.5, 0)?.span.name).toBe('short');
    expect(hitTest(data, roomy, middle(0, 0), 3, 0)?.span.name).toBe('long');
    expect(hitTest(data, roomy, middle(1, 1), 0.5, 0)).toMatchObject({ lane: 'send', device: { name: 'b' } });
  });

  it('finds nothing on the axis, between rows, or before and after', () => {
    expect(hitTest(data, roomy, roomy.axisHeight - 1, 1.5, 0)).toBeNull();
    expect(hitTest(data, roomy, roomy.axisHeight + 1, 1.5, 0)).toBeNull();
    expect(hitTest(data, roomy, middle(0, 0), 5, 0)).toBeNull();
    expect(hitTest(data, roomy, middle(0, 0), 4.05, 0.1)?.span.name).toBe('long');
  });
});
