/** Voltage: the positions of each device, as planned or after the newest division. */
import type { LayoutOf, Mark } from '@/api/types';
import { numbers } from '@/run/data/facts';

type Layout = LayoutOf<'positions'>;

/** The planned bands, or those of the last of the marks `repartitioned`, which has the new bounds. */
export function bandsNow(layout: Layout, causal: boolean, renewed: readonly Mark[]): Layout['shards'] {
  const bounds = numbers(renewed.at(-1)?.facts['bounds']);
  if (bounds.length !== layout.shards.length + 1) return layout.shards;
  const trims = causal && layout.causal_trim;
  return layout.shards.map((band, at) => {
    const stop = bounds[at + 1] ?? band.stop;
    return {
      ...band,
      start: bounds[at] ?? band.start,
      stop,
      keys_stop: trims ? stop : (bounds.at(-1) ?? band.keys_stop),
    };
  });
}
