import { describe, expect, it } from 'vitest';
import type { FigureAnswer, LineAnswer, SpotAnswer } from './answers';
import { toFigure } from './figure';

const spot = (more: Partial<SpotAnswer>): SpotAnswer => ({
  x: 1e7,
  x_label: '10 Mbit/s',
  y: 2,
  low: null,
  high: null,
  coordinates: {},
  repeats: [],
  digests: ['a'],
  problem: '',
  stale: false,
  invalid: 0,
  left_out: [],
  box: null,
  note: '',
  ...more,
});

function answer(kind: string, world: LineAnswer['world'], one: SpotAnswer): FigureAnswer {
  return {
    name: 'figure',
    title: '',
    kind,
    caption: '',
    x: { name: 'rate', title: 'Rate', unit: 'bit/s', log: true, categories: null },
    y: { name: 'latency_s', title: 'Latency', unit: 's', log: false, categories: null },
    better: 'lower',
    heading: '',
    series_title: 'Strategy',
    series: ['voltage'],
    panels: [{ label: '', lines: [{ label: 'voltage', world, spots: [one] }], crossings: [] }],
  };
}

const markOf = (figure: FigureAnswer, runs?: Map<string, number>) => {
  const [series] = toFigure(figure, runs).facets[0]!.series;
  return { source: series!.source, ...series!.marks[0]! };
};

describe('figure data of the server', () => {
  it('becomes hollow, filled and crossed marks by its world', () => {
    expect(markOf(answer('lines', 'predicted', spot({}))).source).toBe('predicted');
    expect(markOf(answer('lines', 'emulated', spot({}))).source).toBe('emulated');
    expect(markOf(answer('lines', 'published', spot({}))).source).toBe('published');
  });

  it('says why a cell has no value, and of a published value where it stands in the paper', () => {
    expect(
      markOf(answer('lines', 'predicted', spot({ y: null, problem: 'door lacks memory.' }))).problem,
    ).toBe('door lacks memory.');
    const published = markOf(answer('lines', 'published', spot({ problem: 'Fig. 4' })));
    expect([published.problem, published.note]).toEqual([null, 'Fig. 4']);
  });

  it('says that runs do not count as valid', () => {
    expect(markOf(answer('lines', 'emulated', spot({ invalid: 2 }))).note).toBe(
      '2 runs do not count as valid.',
    );
  });

  it('knows the run of each repeat', () => {
    const repeats = [{ seed: 0, value: 2, digest: 'a' }];
    expect(
      markOf(answer('lines', 'emulated', spot({ repeats })), new Map([['a', 7]])).repeats[0]!.runId,
    ).toBe(7);
  });

  it('writes x of a scatter plot as a value, its label being that of the point', () => {
    const mark = markOf(answer('scatter', 'predicted', spot({ x_label: 'voltage, 10 Mbit/s' })));
    expect([mark.xText, mark.note]).toEqual(['10 Mbit/s', 'voltage, 10 Mbit/s']);
  });
});
