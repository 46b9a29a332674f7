/** The states of published figures in one order, with one colour each. */
import type { FigureVerdict } from '@/experiment/data/answers';

export type State = FigureVerdict['state'];

/** What agrees, from the best to the worst; then what cannot agree. */
export const STATES: readonly { name: State; color: string }[] = [
  { name: 'confirmed', color: 'var(--loom-good)' },
  { name: 'near', color: 'color-mix(in srgb, var(--loom-good) 50%, var(--loom-surface))' },
  { name: 'direction', color: 'var(--loom-warn)' },
  { name: 'contradicted', color: 'var(--loom-bad)' },
  { name: 'input', color: 'var(--loom-dim)' },
  { name: 'cannot be checked', color: 'var(--loom-wire)' },
];

export function colorOf(state: State): string {
  return STATES.find(({ name }) => name === state)!.color;
}

/** The states that occur, with their share of all in percent. */
export function shares(counts: Readonly<Record<string, number>>) {
  const total = STATES.reduce((sum, { name }) => sum + (counts[name] ?? 0), 0);
  return STATES.flatMap(({ name, color }) => {
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
