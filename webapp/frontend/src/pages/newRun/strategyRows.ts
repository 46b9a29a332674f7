/** The order of the strategies in the form of a new run. */
import type { Assessment, Objective, StrategyRow } from '@/api/types';
import { rankedBy } from '@/advice/objectives';

/** The methods of the papers and of others, and the baselines, each the best first; those that cannot run are last. */
export function grouped(
  strategies: readonly StrategyRow[],
  advice: readonly Assessment[] | undefined,
  reasons: Readonly<Record<string, string | null>>,
  by: Objective,
): [methods: StrategyRow[], baselines: StrategyRow[]] {
  const order = advice ? rankedBy(advice, by).map((row) => row.strategy) : strategies.map(({ name }) => name);
  const place = ({ name }: StrategyRow) => (reasons[name] ? order.length : order.indexOf(name));
  const sorted = strategies.toSorted((a, b) => place(a) - place(b));
  const folds = (row: StrategyRow) => row.is_baseline && !row.origin;
  return [sorted.filter((row) => !folds(row)), sorted.filter(folds)];
}
