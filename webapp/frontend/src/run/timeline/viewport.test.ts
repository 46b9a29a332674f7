import { describe, expect, it } from 'vitest';
import { RunData } from '@/run/data/runData';
import { cluster, model, span } from '@/run/data/fixtures';
import { hitTest, laneTop, roomy } from './layout';
import { tickLabel, tickStep, Viewport } from './viewport';

describe('Viewport', () => {
  it('keeps its right edge at now while it follows', () => {
    const viewport = new Viewport(true);
    viewport.show(1, 5);
    viewport.follow(5.5);
    expect([viewport.start_s, viewport.end_s]).toEqual([4.5, 5.5]);
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
