/** Which points to emulate. */
import type { MetricRow, PreviewAnswer } from './answers';
import type { Coordinate, ExperimentDocument } from './types';

/** Wall seconds that the emulation of these points takes; null if none of them is predicted yet. */
export function emulationTime({ points }: PreviewAnswer, digests: readonly string[]): number | null {
  const wanted = new Set(digests);
  const times = points.flatMap(({ digest, emulate_s }) =>
    wanted.has(digest) && emulate_s !== null ? [emulate_s] : [],
  );
  if (times.length === 0) return null;
  return (times.reduce((sum, time) => sum + time, 0) / times.length) * digests.length;
}

/**
 * Of every cell (all factors but the series of the figure) the points of the level with the best mean of the
 * figure's metric: all of its seeds.
 */
export function bestDigests(
  experiment: ExperimentDocument,
  { rows }: Pick<PreviewAnswer, 'rows'>,
  better: MetricRow['better'],
): string[] {
  const [figure] = experiment.figures;
  if (!figure) return [];
  const sign = better === 'higher' ? 1 : -1;
  const cells = new Map<string, Map<Coordinate, { sum: number; digests: string[] }>>();
  for (const { world, state, coordinates, metrics, digest } of rows) {
    const value = metrics[figure.metric];
    if (world !== 'simulated' || state !== 'done' || value === undefined) continue;
    const { [figure.series]: level = '', ...rest } = coordinates;
    const levels = getOrAdd(cells, JSON.stringify(Object.entries(rest).toSorted()), () => new Map());
    const found = getOrAdd(levels, level, () => ({ sum: 0, digests: [] }));
    found.sum += value;
    found.digests.push(digest);
  }
  return [...cells.values()].flatMap((levels) => {
    const mean = ({ sum, digests }: { sum: number; digests: string[] }) => sum / digests.length;
    const [best] = [...levels.values()].toSorted((a, b) => sign * (mean(b) - mean(a)));
    return best?.digests ?? [];
  });
}

function getOrAdd<Key, Item>(map: Map<Key, Item>, key: Key, make: () => Item): Item {
  const found = map.get(key) ?? make();
  map.set(key, found);
  return found;
}
