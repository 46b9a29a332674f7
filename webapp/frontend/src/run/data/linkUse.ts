/** Utilisation, rate and conditions of a link, as the topology and the controls show them. */
import { human, percent, seconds } from '@/format/units';
import type { LinkView } from './snapshot';

export { utilisation } from './parts';

/** The rate that is set; both rates where the directions differ. */
export function describeRate({ forward, backward }: LinkView): string {
  const there = human(forward.set_bit_per_s, 'bit/s');
  return forward.set_bit_per_s === backward.set_bit_per_s
    ? there
    : `${there} / ${human(backward.set_bit_per_s, 'bit/s')}`;
}

/** Delay, jitter and packet loss, if there are any; forward / backward where the directions differ. */
export function describeConditions({ forward, backward, jitter_s }: LinkView): string {
  const both = (values: [number, number], format: (value: number) => string) =>
    values[0] === values[1] ? format(values[0]) : `${format(values[0])} / ${format(values[1])}`;
  const parts = [];
  if (forward.delay_s > 0 || backward.delay_s > 0)
    parts.push(`delay ${both([forward.delay_s, backward.delay_s], seconds)}`);
  if (jitter_s > 0) parts.push(`jitter ± ${seconds(jitter_s)}`);
  if (forward.loss_frac > 0 || backward.loss_frac > 0)
    parts.push(`packet loss ${both([forward.loss_frac, backward.loss_frac], percent)}`);
  return parts.join(' · ');
}
