import { describe, expect, it } from 'vitest';
import type { Mark } from '@/experiment/chart/model';
import { csvText } from './comparison';
import { captionOf, figureOf, listed, missingText, rowsOf } from './figure';
import { comparisonOf, SWEEP } from './fixtures';
import { type Chosen, comparedOf, NONE, RUN, TOKENS, viewOf } from './view';

function drawn(comparison = SWEEP, chosen: Chosen = {}) {
  const compared = comparedOf(comparison);
  const { view } = viewOf(compared, chosen);
  return { view, figure: figureOf(compared, view) };
}

function marksOf(...of: Parameters<typeof drawn>): [string, Mark][] {
  const { data } = drawn(...of).figure;
  return data.facets.flatMap(({ series }) =>
    series.flatMap(({ label, marks }) => marks.map((mark): [string, Mark] => [label, mark])),
  );
}

describe('the figure of compared runs', () => {
  it('has the mean of repeats with its 95 % interval, and the single runs', () => {
    const marks = marksOf();
    expect(marks.map(([label, { x, mean }]) => [label, x, mean])).toEqual([
      ['voltage', 1e7, 2],
      ['voltage', 1e8, 2],
      ['gpipe', 1e7, 5],
      ['gpipe', 1e8, 4],
    ]);
    // 1 and 3: standard deviation √2, standard error 1, t(1) = 12.706.
    const [, first] = marks[0]!;
    expect([first.low, first.high]).toEqual([2 - 12.706, 2 + 12.706]);
    expect(first.repeats.map(({ value, digest }) => [value, digest])).toEqual([
      [1, '1'],
      [3, '2'],
    ]);
  });

  it('has no interval of one value, and says which runs lack one', () => {
    const [, lacking] = marksOf()[2]!;
    expect([lacking.low, lacking.high]).toEqual([null, null]);
    expect(lacking.note).toBe('Runs 5 and 6. 1 of them without a value.');
    const none = comparisonOf({ strategy: ['gpipe', 'galaxy', 'lime'] }, { latency_s: [1, 2, null] });
    expect(marksOf(none)[2]![1]).toMatchObject({ mean: null, problem: 'run 3: no value' });
  });

  it('never averages runs that are no repeats: what tells them apart becomes a series', () => {
    const { figure } = drawn(SWEEP, { x: 'strategy', hue: NONE });
    expect(figure.split.map(({ title }) => title)).toEqual(['rate of 2 links']);
    expect(figure.data.labels).toEqual(['rate of links 10 Mbit/s', 'rate of links 100 Mbit/s']);
    expect(marksOf(SWEEP, { x: 'strategy', hue: NONE })).toHaveLength(4);
    expect(drawn().figure.split).toEqual([]);
  });

  it('has predictions and measurements as two sources of one series', () => {
    const both = comparisonOf(
      { strategy: ['gpipe', 'gpipe', 'lime'], world: ['simulated', 'real', 'real'] },
      { latency_s: [1, 2, 3] },
      [{}, { world: 'real' }, { world: 'real' }],
    );
    const { series } = drawn(both).figure.data.facets[0]!;
    expect(series.map(({ source, marks }) => [source, marks.map(({ x }) => x)])).toEqual([
      ['predicted', ['gpipe']],
      ['emulated', ['gpipe', 'lime']],
    ]);
  });

  it('orders numbers by their size where they are categories', () => {
    const tokens = comparisonOf({ 'workload.new_tokens': [128, 16, 8] }, { latency_s: [3, 2, 1] });
    expect(drawn(tokens, { kind: 'bars' }).figure.data.categories).toEqual(['8', '16', '128']);
  });

  it('shows every run by itself, also repeats', () => {
    const marks = marksOf(SWEEP, { x: RUN });
    expect(marks.map(([, { digests }]) => digests)).toEqual([
      ['1'],
      ['2'],
      ['3'],
      ['4'],
      ['5'],
      ['6'],
      ['7'],
    ]);
    expect(marks[0]![1].note).toBe('Run 1: run 1.');
  });

  it('has boxes of the times of all tokens after the first of repeats together', () => {
    const comparison = comparisonOf(
      { strategy: ['gpipe', 'gpipe', 'lime'], seed: [0, 1, 0] },
      { latency_s: [1, 2, 3] },
    );
    comparison.series = [
      { run: 0, token_s: [9, 1, 2] },
      { run: 1, token_s: [9, 3, 4, 5] },
      { run: 2, token_s: [9, 7] },
    ];
    const [[, gpipe], [, lime]] = marksOf(comparison, { metric: TOKENS }) as [[string, Mark], [string, Mark]];
    expect(gpipe.box).toEqual({ least: 1, lower: 2, median: 3, upper: 4, most: 5, count: 5 });
    expect(lime.box).toMatchObject({ median: 7, count: 1 });
  });

  it('keeps values apart that read the same with three digits, as lines and as bars', () => {
    const close = comparisonOf(
      { 'cluster.links[a--b].bit_per_s': [100.3e6, 100.1e6, 100.2e6] },
      { latency_s: [3, 1, 2] },
    );
    const bars = drawn(close, { kind: 'bars' });
    expect(bars.figure.data.categories).toEqual(['100.1 Mbit/s', '100.2 Mbit/s', '100.3 Mbit/s']);
    expect(
      rowsOf(bars.figure, bars.view, close)
        .slice(1)
        .map((row) => [row[3], row[7]]),
    ).toEqual([
      [100.1e6, 1],
      [100.2e6, 2],
      [100.3e6, 3],
    ]);
    expect(drawn(close, { hue: NONE }).figure.split).toEqual([]);
  });

  it('keeps a missing value apart from a dash, and true from the word', () => {
    const alike = comparisonOf({ 'params.ratio': [null, '–', true, 'true'] }, { latency_s: [1, 2, 3, 4] });
    const { figure, view } = drawn(alike, { kind: 'bars' });
    const rows = rowsOf(figure, view, alike).slice(1);
    expect(new Map(rows.map((row) => [row[7], row[3]]))).toEqual(
      new Map<unknown, unknown>([
        [1, null],
        [2, '–'],
        [3, true],
        [4, 'true'],
      ]),
    );
    expect(figure.data.categories!.toSorted()).toEqual(['"true"', '"–"', 'true', '–'].toSorted());
  });

  it('gives values a colour of their own that read the same with three digits', () => {
    const close = comparisonOf(
      { strategy: ['gpipe', 'lime', 'gpipe', 'lime'], 'workload.gap_s': [1.001, 1.001, 1.002, 1.002] },
      { latency_s: [1, 2, 3, 4] },
    );
    const { figure } = drawn(close, { x: 'strategy', hue: 'workload.gap_s' });
    expect(figure.data.labels).toEqual(['gap_s 1.001 s', 'gap_s 1.002 s']);
    expect(figure.split).toEqual([]);
    expect(drawn(close, { x: 'strategy', hue: NONE }).figure.split).toHaveLength(1);
  });

  it('has logarithmic axes where they are chosen, but none below bars', () => {
    const logs = (chosen: Chosen) => {
      const { x, y } = drawn(SWEEP, chosen).figure.data;
      return [x.log, y.log];
    };
    expect(logs({ logX: true, logY: true })).toEqual([true, true]);
    expect(logs({ logX: false, logY: false })).toEqual([false, false]);
    expect(logs({ logX: true, logY: true, kind: 'bars' })).toEqual([false, true]);
  });

  it('says which runs a logarithmic y axis has no place for', () => {
    const zero = comparisonOf({ 'workload.users': [1, 2, 3] }, { wait_s: [0, 5, 0] });
    const marks = marksOf(zero).map(([, mark]) => mark);
    const { view } = drawn(zero, { logY: true });
    expect(missingText(marks, view)).toBe(
      'Runs 1 and 3: not above 0, so that a logarithmic axis has no place for the value.',
    );
    expect(missingText(marks, { ...view, logY: false })).toBe('');
  });

  it('has a caption that counts the runs with a value', () => {
    const two = comparisonOf(
      { strategy: ['gpipe', 'gpipe', 'gpipe', 'lime', 'lime', 'lime'], seed: [0, 1, 2, 0, 1, 2] },
      { latency_s: [1, 2, 3, 4, 5, null], ttft_s: [1, 2, null, null, null, null] },
    );
    const captioned = (chosen: Chosen) => {
      const { view } = drawn(two, chosen);
      return captionOf(
        view,
        marksOf(two, chosen).map(([, mark]) => mark),
      );
    };
    expect(captioned({})).toContain('the mean of 2 to 3 runs');
    expect(captioned({ metric: 'ttft_s' })).toContain('the mean of 2 runs');
    expect(captioned({ x: RUN })).toBeUndefined();
    expect(captioned({ kind: 'boxes' })).toContain('middle half');
  });

  it('has no interval beside a box, nor in its row', () => {
    const { figure, view } = drawn(SWEEP, { kind: 'boxes' });
    const [[, first]] = marksOf(SWEEP, { kind: 'boxes' }) as [[string, Mark]];
    expect([first.box!.median, first.low, first.high]).toEqual([2, null, null]);
    expect(rowsOf(figure, view, SWEEP)[1]!.slice(7, 13)).toEqual([2, null, null, 1, 1.5, 2]);
  });

  it('has no series of its own for what differs where every run stands by itself', () => {
    expect(drawn(SWEEP, { x: RUN }).figure.split).toEqual([]);
  });

  it('says of a mark why it cannot simply be compared', () => {
    const sentence = '16 new tokens here, 8 in the baseline.';
    const comparison = comparisonOf({ 'workload.new_tokens': [8, 16] }, { latency_s: [1, 2] }, [
      {},
      {
        cautions: [
          { kind: 'workload', sentence, decides: true },
          { kind: 'seed', sentence: 'Seed 1 here, 0 in the baseline.', decides: false },
        ],
      },
    ]);
    expect(marksOf(comparison)[1]![1].note).toBe(`Run 2: run 2. ${sentence}`);
  });
});

describe('the figure as CSV', () => {
  it('has a row per mark in SI units, with its runs and their values', () => {
    const { figure, view } = drawn();
    const lines = csvText(rowsOf(figure, view, SWEEP)).split('\n');
    expect(lines[0]).toBe(
      'metric,unit,x,x value,series,source,n,mean,interval low,interval high,least,lower quartile,median,upper quartile,most,runs,values of the runs',
    );
    expect(lines[1]).toBe(
      'latency_s,s,cluster.links[a--hub].bit_per_s,10000000,voltage,predicted,2,2,-10.706,14.706,,,,,,1 2,1 3',
    );
    expect(lines[3]).toContain(',gpipe,predicted,1,5,,,');
  });

  it('has numbers also where they are categories', () => {
    const { figure, view } = drawn(SWEEP, { kind: 'bars' });
    expect(rowsOf(figure, view, SWEEP)[1]!.slice(3, 5)).toEqual([1e7, 'voltage']);
  });
});

describe('runs in a sentence', () => {
  it('are listed', () => {
    expect(listed('run', ['3'])).toBe('run 3');
    expect(listed('run', ['3', '4', '5'])).toBe('runs 3, 4 and 5');
  });
});
