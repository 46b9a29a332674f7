import { expect, test } from 'vitest';
import type { World } from '@/api/worlds';
import type { RowAnswer } from './answers';
import type { ExperimentDocument } from './types';
import { lacksBoard, mayUseBoards, offBy, sideBySide, worldsOf } from './worlds';

const row = (index: number, world: World, latency_s?: number) =>
  ({ index, world, metrics: latency_s === undefined ? {} : { latency_s } }) as unknown as RowAnswer;

test('points of several worlds stand side by side, measured ones with their difference from the prediction', () => {
  const rows = [
    row(0, 'nodes', 2.2),
    row(0, 'predicted', 2),
    row(0, 'emulated', 1.9),
    row(1, 'predicted', 3),
    row(2, 'predicted', 4),
    row(2, 'nodes'),
  ];
  const points = sideBySide(rows, 'latency_s');
  expect(points.map(({ index }) => index)).toEqual([0]);
  expect(worldsOf(points)).toEqual(['predicted', 'emulated', 'nodes']);
  expect(offBy(points[0]!, 'nodes')).toBeCloseTo(0.1);
  expect(offBy(points[0]!, 'emulated')).toBeCloseTo(-0.05);
  expect(offBy(points[0]!, 'predicted')).toBeNull();
});

test('a run that has lost a board is not compared, and says so', () => {
  const lost = row(0, 'nodes', 7);
  lost.metrics['recovery_detect_s'] = 0.5;
  const [point] = sideBySide([row(0, 'predicted', 2), lost], 'latency_s');
  expect(offBy(point!, 'nodes')).toBeNull();
  expect([lacksBoard(point!, 'nodes'), lacksBoard(point!, 'predicted')]).toEqual([true, false]);
});

test('without a prediction nothing is said of differences', () => {
  const [point] = sideBySide([row(0, 'emulated', 2), row(0, 'nodes', 3)], 'latency_s');
  expect(offBy(point!, 'nodes')).toBeNull();
});

test('an experiment may use boards where it says so or its devices are boards', () => {
  const of = (base: object, worlds: World[] = ['predicted']) =>
    mayUseBoards({ base, worlds } as unknown as ExperimentDocument);
  expect(of({ cluster: 'lab-3' })).toBe(false);
  expect(of({ cluster: 'lab-3' }, ['predicted', 'nodes'])).toBe(true);
  expect(of({ cluster: { devices: [{}, { node: 'pi' }] } })).toBe(true);
  expect(of({ cluster: { devices: [{}] } })).toBe(false);
});
