/** A small figure for tests: two methods at two rates, one of them emulated once, one cell without a value. */
import type { FigureData, Mark } from './model';

export function markOf(x: number, mean: number | null, more: Partial<Mark> = {}): Mark {
  return {
    x,
    xText: `${x / 1e6} Mbit/s`,
    mean,
    low: null,
    high: null,
    repeats: [],
    digests: [`${x}-${mean}`],
    problem: null,
    stale: false,
    ...more,
  };
}

export const figure: FigureData = {
  kind: 'lines',
  x: { title: 'Rate of all links', unit: 'bit/s', log: true },
  y: { title: 'Time per token', unit: 's', log: false },
  labels: ['single', 'voltage'],
  categories: null,
  facets: [
    {
      label: '',
      series: [
        { label: 'single', source: 'predicted', marks: [markOf(1e7, 2), markOf(1e8, 2)] },
        {
          label: 'voltage',
          source: 'predicted',
          marks: [
            markOf(1e7, 4, { low: 3, high: 5 }),
            markOf(1e8, null, { problem: 'door lacks memory.' }),
            markOf(1e9, 1, { low: 0.9, high: 1.1 }),
          ],
        },
        { label: 'voltage', source: 'emulated', marks: [markOf(1e7, 4.2)] },
        { label: 'voltage', source: 'published', marks: [markOf(1e7, 5, { digests: [] })] },
      ],
    },
  ],
};
