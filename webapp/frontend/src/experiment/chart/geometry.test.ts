import { describe, expect, it } from 'vitest';
import { figure, lineOf, spotOf } from './fixtures';
import { bandPath, inside, linePath, nearest, placeSpots, segments, stepFrom } from './geometry';
import { NOTHING_HIDDEN } from './model';
import { logTicks, xScale, yScale } from './scales';

const x = xScale(figure, 400);
const y = yScale(figure, NOTHING_HIDDEN, 200);
const placed = placeSpots(figure, 0, NOTHING_HIDDEN, { x, y });

describe('the axes of a figure', () => {
  it('places a tenfold value equally far on a logarithmic axis, its ticks being the values of the experiment', () => {
    expect(x.of(1e8) - x.of(1e7)).toBeCloseTo(x.of(1e9) - x.of(1e8));
    expect(x.ticks.map(({ text }) => text)).toEqual(['10', '100', '1000']);
  });

  it('begins a linear y axis at zero and includes the upper end of every interval', () => {
    expect(y.of(0)).toBe(200);
    expect(y.of(5)).toBeGreaterThanOrEqual(0);
  });

  it('writes its ticks in the multiple of the unit that its title has', () => {
    const inMs = { ...figure, y: { ...figure.y, factor: 1e-3 } };
    expect(yScale(inMs, NOTHING_HIDDEN, 200).ticks.map(({ text }) => text)).toContain('4000');
    const measured = { ...figure, x: { ...figure.x, log: false, ticks: null } };
    expect(xScale(measured, 400).ticks.map(({ text }) => text)).toEqual(['200', '400', '600', '800', '1000']);
  });

  it('keeps a mark that a logarithmic y axis has no place for, as one without a place', () => {
    const log = { ...figure, y: { ...figure.y, log: true } };
    const withZero = {
      ...log,
      panels: [
        {
          label: '',
          crossings: [],
          lines: [lineOf('single', 'predicted', [spotOf(1e7, 0)])],
        },
      ],
    };
    const [zero] = placeSpots(withZero, 0, NOTHING_HIDDEN, { x, y });
    expect(zero).toMatchObject({ cy: null, low: null, high: null, spot: { y: 0 } });
  });

  it('has ticks at 1, 2 and 5 over few decades, at powers of ten over many', () => {
    expect(logTicks([0.9, 21])).toEqual([1, 2, 5, 10, 20]);
    expect(logTicks([0.001, 1000])).toEqual([0.001, 0.01, 0.1, 1, 10, 100, 1000]);
  });

  it('keeps the colour of the series that stay when another is hidden', () => {
    const hidden = { labels: new Set(['single']), sources: new Set<never>() };
    expect(placeSpots(figure, 0, hidden, { x, y }).map(({ place }) => place)).toEqual([1, 1, 1, 1, 1]);
  });
});

describe('lines', () => {
  it('are interrupted where a cell has no value, and leave published values alone', () => {
    const lines = segments(placed).map((part) => part.map(({ key }) => key));
    expect(lines).toEqual([
      ['0/single/predicted/10000000', '0/single/predicted/100000000'],
      ['0/voltage/predicted/10000000'],
      ['0/voltage/predicted/1000000000'],
      ['0/voltage/emulated/10000000'],
    ]);
  });

  it('have a band only where every mark has an interval', () => {
    const at = (cx: number) => ({ ...placed[2]!, cx, cy: 10, low: 12, high: 8 });
    expect(bandPath([at(0), at(5)])).toBe('M0.0 8.0L5.0 8.0L5.0 12.0L0.0 12.0Z');
    expect(bandPath([at(0), { ...at(5), low: null }])).toBe('');
    expect(linePath([at(0), at(5)])).toBe('M0.0 10.0L5.0 10.0');
  });
});

describe('choosing marks', () => {
  it('takes those inside a box drawn in any direction, but none without a value', () => {
    const whole = { x0: 400, y0: 200, x1: 0, y1: 0 };
    expect(inside(placed, whole)).toHaveLength(6);
    expect(
      inside(placed, { x0: x.of(1e9) - 1, y0: 0, x1: x.of(1e9) + 1, y1: 200 }).map(({ label }) => label),
    ).toEqual(['voltage']);
  });

  it('takes the one next to the pointer, however close another is, and none that is far away', () => {
    const [first] = placed;
    const close = { ...first!, key: 'close', cy: first!.cy! + 8 };
    expect(nearest([first!, close], first!.cx, first!.cy! + 3, 200)).toBe(first);
    expect(nearest([first!, close], first!.cx, first!.cy! + 5, 200)).toBe(close);
    expect(nearest([first!], first!.cx + 40, first!.cy!, 200)).toBeNull();
  });

  it('goes along the series with left and right, and over the marks at the same x with up and down', () => {
    const first = stepFrom(placed, null, 'right');
    expect(first).toBe('0/single/predicted/10000000');
    expect(stepFrom(placed, first, 'right')).toBe('0/single/predicted/100000000');
    expect(stepFrom(placed, first, 'left')).toBe(first);
    expect(stepFrom(placed, first, 'up')).toBe('0/voltage/predicted/10000000');
    expect(stepFrom(placed, '0/voltage/predicted/10000000', 'up')).toBe('0/voltage/emulated/10000000');
    expect(stepFrom(placed, first, 'last')).toBe('0/voltage/published/10000000');
  });
});

describe('bars', () => {
  const bars = { ...figure, kind: 'bars', x: { ...figure.x, categories: ['a', 'b'] } };
  const band = xScale(bars, 400);

  it('of one label share a slot, and slots of different labels do not overlap', () => {
    const one = (label: string, world: 'predicted' | 'emulated') =>
      lineOf(label, world, [{ ...spotOf(0, 1), x: 'a', x_label: 'a' }]);
    const data = {
      ...bars,
      panels: [
        {
          label: '',
          crossings: [],
          lines: [one('single', 'predicted'), one('voltage', 'predicted'), one('voltage', 'emulated')],
        },
      ],
    };
    const [single, predicted, emulated] = placeSpots(data, 0, NOTHING_HIDDEN, { x: band, y });
    expect(predicted!.cx).toBe(emulated!.cx);
    expect(predicted!.cx - single!.cx).toBeGreaterThanOrEqual(predicted!.width);
  });

  it('have the whole band where no category has two labels', () => {
    const one = (label: string, category: string) =>
      lineOf(label, 'predicted', [{ ...spotOf(0, 1), x: category, x_label: category }]);
    const place = (...series: ReturnType<typeof one>[]) =>
      placeSpots({ ...bars, panels: [{ label: '', crossings: [], lines: series }] }, 0, NOTHING_HIDDEN, {
        x: band,
        y,
      });
    const apart = place(one('single', 'a'), one('voltage', 'b'));
    expect(apart.map(({ cx }) => cx)).toEqual([band.of('a'), band.of('b')]);
    expect(apart[0]!.width).toBeCloseTo(band.band * 0.86);
    expect(place(one('single', 'a'), one('voltage', 'a'))[0]!.width).toBeCloseTo((band.band / 2) * 0.86);
  });
});

describe('boxes', () => {
  const spread = { least: 1, lower: 2, median: 3, upper: 4, most: 40, count: 9 };
  const boxes = {
    ...figure,
    kind: 'boxes',
    x: { ...figure.x, categories: ['a'] },
    panels: [
      {
        label: '',
        crossings: [],
        lines: [lineOf('single', 'predicted', [{ ...spotOf(0, 8), x: 'a', x_label: 'a', box: spread }])],
      },
    ],
  };

  it('lie between their quartiles, with all of their values on the axis', () => {
    const scale = yScale(boxes, NOTHING_HIDDEN, 200);
    const [one] = placeSpots(boxes, 0, NOTHING_HIDDEN, { x: xScale(boxes, 400), y: scale });
    expect(one!.box).toEqual({
      least: scale.of(1),
      lower: scale.of(2),
      median: scale.of(3),
      upper: scale.of(4),
      most: scale.of(40),
    });
    expect(scale.of(40)).toBeGreaterThanOrEqual(0);
    expect(one!.width).toBeGreaterThan(0);
  });
});

describe('points at a category', () => {
  it('of two labels stand a little apart, in the order of the labels', () => {
    const points = {
      ...figure,
      kind: 'scatter',
      x: { ...figure.x, categories: ['a'] },
      panels: [
        {
          label: '',
          crossings: [],
          lines: ['single', 'voltage'].map((label) =>
            lineOf(label, 'predicted', [{ ...spotOf(0, 1), x: 'a', x_label: 'a' }]),
          ),
        },
      ],
    };
    const [single, voltage] = placeSpots(points, 0, NOTHING_HIDDEN, { x: xScale(points, 400), y });
    expect(voltage!.cx - single!.cx).toBe(16);
    expect(single!.width).toBe(0);
  });
});
