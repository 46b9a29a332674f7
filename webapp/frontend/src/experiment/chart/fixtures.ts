/** A small figure for tests: two methods at two rates, one of them emulated once, one cell without a value. */
import type { FigureData, Line, Spot } from './model';

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

export const lineOf = (label: string, world: Line['world'], spots: Spot[]): Line => ({
  label,
  world,
  mark: world === 'published' ? world : world === 'predicted' ? 'hollow' : 'filled',
  spots,
  same_as: '',
  name: label,
  drawn: true,
});

export const figure: FigureData = {
  name: 'figure',
  title: '',
  heading: '',
  kind: 'lines',
  caption: '',
  x: {
    name: 'rate',
    title: 'Rate of all links',
    unit: 'bit/s',
    log: true,
    categories: null,
    multiple: 'Mbit/s',
    factor: 1e6,
    heading: 'Rate of all links (Mbit/s)',
    ticks: [1e7, 1e8, 1e9].map((value) => ({ value, text: String(value / 1e6) })),
  },
  y: {
    name: 'tpot_s',
    title: 'Time per token',
    unit: 's',
    log: false,
    categories: null,
    multiple: 's',
    factor: 1,
    heading: 'Time per token (s)',
    ticks: null,
  },
  better: 'lower',
  series_title: '',
  series: ['single', 'voltage'],
  legend: {
    series: ['single', 'voltage'].map((label, place) => ({ label, name: label, place })),
    sources: [
      { source: 'predicted', mark: 'hollow' },
      { source: 'emulated', mark: 'filled' },
      { source: 'published', mark: 'published' },
    ],
    left_out: '',
  },
  panels: [
    {
      label: '',
      crossings: [],
      lines: [
        lineOf('single', 'predicted', [spotOf(1e7, 2), spotOf(1e8, 2)]),
        lineOf('voltage', 'predicted', [
          spotOf(1e7, 4, { low: 3, high: 5 }),
          spotOf(1e8, null, { problem: 'door lacks memory.' }),
          spotOf(1e9, 1, { low: 0.9, high: 1.1 }),
        ]),
        lineOf('voltage', 'emulated', [spotOf(1e7, 4.2)]),
        lineOf('voltage', 'published', [spotOf(1e7, 5, { digests: [] })]),
      ],
    },
  ],
};
