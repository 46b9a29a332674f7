/** Points of any experiments that are to be compared; kept in the browser. */
import { useLocalStorage } from '@mantine/hooks';

export interface ComparedPoint {
  experiment: number;
  digest: string;
}

/** The most points side by side. */
const MOST_COMPARED = 24;

export function useComparison() {
  return useLocalStorage<ComparedPoint[]>({ key: 'edgeloom-compared-points', defaultValue: [] });
}

/** The points with those of `experiment` added, each once; the latest if they are too many. */
export function withPoints(
  old: readonly ComparedPoint[],
  experiment: number,
  digests: readonly string[],
): ComparedPoint[] {
  const fresh = digests.filter(
    (digest) => !old.some((point) => point.experiment === experiment && point.digest === digest),
  );
  return [...old, ...fresh.map((digest) => ({ experiment, digest }))].slice(-MOST_COMPARED);
}
