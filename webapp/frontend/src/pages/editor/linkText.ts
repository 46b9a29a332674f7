/** What a link's label and its tooltip say. */
import type { LinkSpec } from '@/api/types';
import { linkTitle } from '@/format/links';
import { percent, rate, seconds } from '@/format/units';

/** `30 ⇄ 50 Mbit/s`: from a to b, then back; one value if both are the same, one unit if both have it. */
export function both(there: number, back: number | null, text: (value: number) => string): string {
  if (back === null || back === there) return text(there);
  return `${text(there)} ⇄ ${text(back)}`.replace(/^(\S+) (\S+)( ⇄ \S+ \2)$/, '$1$3');
}

const delay = (link: LinkSpec) => both(link.delay_s, link.reverse_delay_s, seconds);
const loss = (link: LinkSpec) => both(link.loss_frac, link.reverse_loss_frac, percent);

/** Beside the rate: what of delay, jitter and loss is not zero. */
export function extrasOf(link: LinkSpec): string[] {
  const lossy = Math.max(link.loss_frac, link.reverse_loss_frac ?? 0) > 0;
  return [
    ...(Math.max(link.delay_s, link.reverse_delay_s ?? 0) > 0 ? [delay(link)] : []),
    ...(link.jitter_s > 0 ? [`± ${seconds(link.jitter_s)}`] : []),
    ...(lossy ? [`${loss(link)} packet loss`] : []),
  ];
}

/** All conditions of a link, a line each; of two values the first is from its first node to its second. */
export function conditionsOf(link: LinkSpec): string {
  return [
    linkTitle(link),
    `rate ${both(link.bit_per_s, link.reverse_bit_per_s, rate)}`,
    `delay ${delay(link)}`,
    `jitter ${seconds(link.jitter_s)}`,
    `packet loss ${loss(link)}`,
  ].join('\n');
}
