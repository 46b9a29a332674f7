import type { RunDetail } from '@/api/types';
import type { Snapshot } from '@/run/data/snapshot';

/** Wall seconds per virtual second: as the run goes, else as it was asked for; null if neither is known. */
export function dilationOf(picture: Snapshot, run: RunDetail): number | null {
  const known = run.report?.dilation ?? picture.report?.dilation ?? picture.dilation;
  return known ?? (typeof run.spec.dilation === 'number' ? run.spec.dilation : null);
}
