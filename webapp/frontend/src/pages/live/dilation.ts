import type { RunDetail } from '@/api/types';
import type { Snapshot } from '@/run/data/snapshot';

/** Wall seconds per virtual second: as the run chose it, else as it was asked for; null if neither is known. */
export function dilationOf(picture: Snapshot, run: RunDetail): number | null {
  const known = run.report?.dilation ?? picture.report?.dilation;
  if (known !== undefined) return known;
  const said = picture.states
    .find((one) => one.detail.startsWith('dilation '))
    ?.detail.slice('dilation '.length);
  const number = Number(said);
  if (said && Number.isFinite(number)) return number;
  return typeof run.spec.dilation === 'number' ? run.spec.dilation : null;
}
