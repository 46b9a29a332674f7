/** How near our values are to published ones, and the summary that the server sends. */

export type Nearness = 'within 10 %' | 'within 30 %' | 'direction holds' | 'does not hold' | 'not known';

/** From the best to the worst; each verdict has one colour and, in the bars, one place. */
export const NEARNESS: readonly { name: Nearness; color: string }[] = [
  { name: 'within 10 %', color: '#2f8a4c' },
  { name: 'within 30 %', color: '#7fbf9d' },
  { name: 'direction holds', color: '#d9982a' },
  { name: 'does not hold', color: '#c23b3b' },
  { name: 'not known', color: '#9aa4b0' },
];

export interface Reproductions {
  papers: {
    paper: string;
    title: string;
    figures: number;
    in_experiments: number;
    checked: number;
    left_out: number;
    counts: Partial<Record<Nearness, number>>;
  }[];
  experiments: {
    paper: string;
    name: string;
    title: string;
    description: string;
    figures: number;
    points: number;
    counts: Partial<Record<Nearness, number>>;
    worlds: string[];
    code_versions: string[];
    assumptions: string[];
  }[];
  others: { kind: string; reason: string; figures: number }[];
}

/** The verdicts that occur, with their share of all in percent. */
export function shares(counts: Partial<Record<Nearness, number>>) {
  const total = NEARNESS.reduce((sum, { name }) => sum + (counts[name] ?? 0), 0);
  return NEARNESS.flatMap(({ name, color }) => {
    const count = counts[name] ?? 0;
    return count > 0 ? [{ name, color, count, percent: (count / total) * 100 }] : [];
  });
}
