/** The words of a figure: what a mark means, for its tip and for a screen reader. */
import { marginText } from '@/format/metrics';
import { between } from '@/format/units';
import type { Placed } from './geometry';
import type { Axis, FigureData, Spot } from './model';

type Format = (value: number) => string;

/** "1.2 s ± 0.1 s (3 repeats)", or why there is no value. */
export function valueText({ y: mean, low, high, repeats, problem, box }: Spot, format: Format): string {
  if (mean === null) return problem || 'no result yet';
  if (box) {
    const median = format(box.median);
    if (box.count === 1) return `${median} (1 value)`;
    const [half, all] = [between(box.lower, box.upper, format), between(box.least, box.most, format)];
    return `median ${median}; the middle half of ${box.count} values: ${half}; all: ${all}`;
  }
  if (low === null || high === null) return format(mean);
  return `${format(mean)}${marginText((high - low) / 2, format)} (${repeats.length} repeats)`;
}

/** One sentence for a screen reader. */
export function spoken(one: Placed, { x }: FigureData, format: Format): string {
  return `${one.label || 'value'}, ${one.source}, ${x.title} ${one.spot.x_label}: ${valueText(one.spot, format)}`;
}

/** The title of an axis with the unit of its ticks, and that it is logarithmic. */
export const axisTitle = ({ heading, log }: Axis): string => (log ? `${heading}, log scale` : heading);
