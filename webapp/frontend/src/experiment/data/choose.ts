/** Which points to emulate. */
import type { BestAnswer, PreviewAnswer, RowAnswer } from './answers';

/** Wall seconds that the emulation of these points takes; null if none of them is predicted yet. */
export function emulationTime({ points }: PreviewAnswer, digests: readonly string[]): number | null {
  const wanted = new Set(digests);
  const times = points.flatMap(({ digest, emulate_s }) =>
    wanted.has(digest) && emulate_s !== null ? [emulate_s] : [],
  );
  if (times.length === 0) return null;
  return (times.reduce((sum, time) => sum + time, 0) / times.length) * digests.length;
}

/** The points, with all of their seeds, of the best level of every place. */
export function bestDigests(best: readonly BestAnswer[], rows: readonly RowAnswer[]): string[] {
  const chosen = best.flatMap(({ of, level, coordinates }) =>
    rows.filter(
      (row) =>
        row.coordinates[of] === level &&
        Object.entries(coordinates).every(
          ([name, value]) => name === 'world' || row.coordinates[name] === value,
        ),
    ),
  );
  return [...new Set(chosen.map(({ digest }) => digest))].filter((digest) => digest !== '');
}
