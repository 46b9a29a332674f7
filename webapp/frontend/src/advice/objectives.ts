/** What strategies are ranked by, and their figures as text. */
import type { Assessment, Objective } from '@/api/types';
import { bytes, joules, seconds, three } from '@/format/units';

export interface Goal {
  key: Objective;
  title: string;
  text: (value: number) => string;
}

export const GOALS: readonly Goal[] = [
  { key: 'total_s', title: 'Whole answer', text: seconds },
  { key: 'first_token_s', title: 'First token', text: seconds },
  { key: 'per_token_s', title: 'Per token', text: seconds },
  { key: 'tokens_per_s', title: 'Throughput', text: (value) => `${three(value)} tokens/s` },
  { key: 'peak_memory_bytes', title: 'Memory', text: bytes },
  { key: 'energy_j', title: 'Energy', text: joules },
];

export const goalOf = (key: Objective): Goal => GOALS.find((goal) => goal.key === key) ?? GOALS[0]!;

/** A strategy's figure; null where it has no plan or the figure means nothing. */
export function figureOf(row: Assessment, by: Objective): number | null {
  return row[by] ?? null;
}

/** The rows, the best first and those without a figure last, in their order. */
export function rankedBy(rows: readonly Assessment[], by: Objective): Assessment[] {
  const sign = by === 'tokens_per_s' ? -1 : 1;
  const key = (row: Assessment) => {
    const figure = figureOf(row, by);
    return figure === null ? Infinity : sign * figure;
  };
  return rows.toSorted((a, b) => {
    const [x, y] = [key(a), key(b)];
    return x === y ? 0 : x - y;
  });
}

/** How long a row's bar is, in [0, 1]: its figure against the largest one shown. */
export function barOf(row: Assessment, rows: readonly Assessment[], by: Objective): number {
  const largest = Math.max(...rows.map((each) => figureOf(each, by) ?? 0));
  const figure = figureOf(row, by);
  return figure === null || largest <= 0 ? 0 : figure / largest;
}
