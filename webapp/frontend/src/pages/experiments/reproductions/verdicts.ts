/** How near our values are to published ones: the verdicts in one order, with one colour each. */
import type { FigureVerdict } from '@/experiment/data/answers';

export type Nearness = FigureVerdict['verdict'];

/** From the best to the worst. */
export const NEARNESS: readonly { name: Nearness; color: string }[] = [
  { name: 'within 10 %', color: 'var(--loom-good)' },
  { name: 'within 30 %', color: 'color-mix(in srgb, var(--loom-good) 50%, var(--loom-surface))' },
  { name: 'direction holds', color: 'var(--loom-warn)' },
  { name: 'does not hold', color: 'var(--loom-bad)' },
  { name: 'not known', color: 'var(--loom-wire)' },
];

export function colorOf(verdict: Nearness): string {
  return NEARNESS.find(({ name }) => name === verdict)!.color;
}

/** The verdicts that occur, with their share of all in percent. */
export function shares(counts: Readonly<Record<string, number>>) {
  const total = NEARNESS.reduce((sum, { name }) => sum + (counts[name] ?? 0), 0);
  return NEARNESS.flatMap(({ name, color }) => {
    const count = counts[name] ?? 0;
    return count > 0 ? [{ name, color, count, percent: (count / total) * 100 }] : [];
  });
}

/** By how much ours differs: "+12 %"; nothing where no number is published. */
export function deviationText(deviation: number | null): string {
  if (deviation === null) return '';
  const percent = Math.round(deviation * 100);
  return percent === 0 ? '0 %' : `${percent > 0 ? '+' : '−'}${Math.abs(percent)} %`;
}
