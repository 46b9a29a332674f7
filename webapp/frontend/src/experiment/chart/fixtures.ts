/** A small figure for tests: two methods at two rates, one of them emulated once, one cell without a value. */
import type { FigureData, Spot } from './model';

export function spotOf(x: number, y: number | null, more: Partial<Spot> = {}): Spot {
  return {
    x,
    x_label: `${x / 1e6} Mbit/s`,
    y,
    low: null,
    high: null,
    coordinates: {},
    repeats: [],
    digests: [`${x}-${y}`],
    problem: '',
    stale: false,
    invalid: 0,
    left_out: [],
    box: null,
    note: '',
    ...more,
  };
}

export const figure: FigureData = {
  name: 'figure',
  title: '',
  heading: '',
  kind: 'lines',
  caption: '',
  x: { name: 'rate', title: 'Rate of all links', unit: 'bit/s', log: true, categories: null },
  y: { name: 'tpot_s', title: 'Time per token', unit: 's', log: false, categories: null },
  better: 'lower',
  series_title: '',
  series: ['single', 'voltage'],
  panels: [
    {
      label: '',
      crossings: [],
      lines: [
        { label: 'single', world: 'predicted', spots: [spotOf(1e7, 2), spotOf(1e8, 2)] },
        {
          label: 'voltage',
          world: 'predicted',
          spots: [
            spotOf(1e7, 4, { low: 3, high: 5 }),
            spotOf(1e8, null, { problem: 'door lacks memory.' }),
            spotOf(1e9, 1, { low: 0.9, high: 1.1 }),
          ],
        },
        { label: 'voltage', world: 'emulated', spots: [spotOf(1e7, 4.2)] },
        { label: 'voltage', world: 'published', spots: [spotOf(1e7, 5, { digests: [] })] },
      ],
    },
  ],
};
