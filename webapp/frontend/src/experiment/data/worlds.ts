/** The same points in several worlds, side by side. */
import { isMeasured, WORLDS, type World } from '@/api/worlds';
import type { RowAnswer } from './answers';
import type { ExperimentDocument } from './types';

export interface Point extends Pick<RowAnswer, 'index' | 'coordinates' | 'seed'> {
  /** The value of each world that has one. */
  values: Partial<Record<World, number>>;
  /** The prediction that measured values are compared with; null without one. */
  predicted: number | null;
  /** Whether the run on boards lost one, which no prediction knows of. */
  hasLostBoard: boolean;
}

/** Points with a value of `metric` in several worlds, in their order. */
export function sideBySide(rows: readonly RowAnswer[], metric: string): Point[] {
  const points = new Map<number, Point>();
  for (const row of rows) {
    const value = row.metrics[metric];
    if (value === undefined || value === null) continue;
    const { index, coordinates, seed } = row;
    const point = points.get(index) ?? {
      index,
      coordinates,
      seed,
      values: {},
      predicted: null,
      hasLostBoard: false,
    };
    point.values[row.world] = value;
    if (!isMeasured(row.world)) point.predicted = value;
    if (row.world === 'nodes') point.hasLostBoard = row.metrics['recovery_detect_s'] != null;
    points.set(index, point);
  }
  return [...points.values()].filter(({ values }) => Object.keys(values).length > 1);
}

/** The worlds that some of the points have, from the quickest to the slowest. */
export const worldsOf = (points: readonly Point[]): World[] =>
  WORLDS.filter((world) => points.some(({ values }) => values[world] !== undefined));

/** Whether the value is of a run that went on without a board. */
export const lacksBoard = ({ values, hasLostBoard }: Point, world: World): boolean =>
  world === 'nodes' && hasLostBoard && values.nodes !== undefined;

/** How far the measured value of a world is from the prediction, as a fraction of it; null where there is none. */
export function offBy(point: Point, world: World): number | null {
  const { values, predicted } = point;
  const value = values[world];
  if (lacksBoard(point, world)) return null;
  return !isMeasured(world) || value === undefined || !predicted ? null : value / predicted - 1;
}

/** Whether points of the experiment may be on boards: it says so, or its cluster has devices that are boards. */
export function mayUseBoards({ base, worlds }: ExperimentDocument): boolean {
  const cluster = base['cluster'] as { devices?: { node?: string }[] } | string | undefined;
  const devices = typeof cluster === 'object' ? (cluster.devices ?? []) : [];
  return worlds.includes('nodes') || devices.some(({ node }) => node);
}
