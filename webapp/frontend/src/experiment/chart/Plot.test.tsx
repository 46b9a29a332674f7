import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { figure, spotOf } from './fixtures';
import { NOTHING_HIDDEN } from './model';
import { Plot } from './Plot';
import { xScale, yScale } from './scales';
import { valueText } from './texts';

const format = (value: number) => `${value} s`;

function drawn(selected: string[] = []): string {
  return renderToStaticMarkup(
    <Plot
      data={figure}
      panel={0}
      hidden={NOTHING_HIDDEN}
      x={xScale(figure, 400)}
      y={yScale(figure, NOTHING_HIDDEN, 200)}
      width={400}
      height={200}
      showsRepeats={false}
      selected={new Set(selected)}
      onSelect={() => undefined}
      onHover={() => undefined}
      yTitle="Time per token"
      left={70}
      formatY={format}
    />,
  );
}

/** The part of the drawing that belongs to the spot with this spoken text. */
function markWith(text: string, svg: string): string {
  const at = svg.indexOf(`aria-label="${text}`);
  expect(at).toBeGreaterThan(0);
  const next = svg.indexOf('role="option"', at);
  return svg.slice(at, next < 0 ? undefined : next);
}

describe('a plot', () => {
  it('draws predicted values hollow, emulated ones filled and published ones as crosses', () => {
    const svg = drawn();
    expect(markWith('voltage, predicted, Rate of all links 10 Mbit/s', svg)).toContain(
      'fill="var(--loom-surface)"',
    );
    expect(markWith('voltage, emulated, Rate of all links 10 Mbit/s', svg)).toContain('fill="#c8701a"');
    expect(markWith('voltage, published, Rate of all links 10 Mbit/s', svg)).toContain('M-4.2-4.2L4.2 4.2');
  });

  it('says every value to a screen reader, and why a cell has none', () => {
    const svg = drawn();
    expect(svg).toContain('voltage, predicted, Rate of all links 10 Mbit/s: 4 s ± 1 s (0 repeats)');
    expect(svg).toContain('voltage, predicted, Rate of all links 100 Mbit/s: door lacks memory.');
  });

  it('says that an axis is logarithmic in its title alone', () => {
    const svg = drawn();
    expect(svg.match(/log scale/g)).toHaveLength(1);
    expect(svg).toContain('>Rate of all links (Mbit/s), log scale</text>');
  });

  it('marks the selected points, and never a published value', () => {
    const svg = drawn(['10000000-2']);
    expect(svg.match(/aria-selected="true"/g)).toHaveLength(1);
  });
});

describe('the value of a spot', () => {
  it('has the half-width of its interval and the number of repeats', () => {
    const repeats = [1, 2, 3].map((value) => ({ value, digest: String(value), seed: 0 }));
    expect(valueText({ ...figure.panels[0]!.lines[1]!.spots[0]!, repeats }, format)).toBe(
      '4 s ± 1 s (3 repeats)',
    );
  });

  it('of a box has its median, its quartiles and extremes, and how many values they are of', () => {
    const box = { least: 1, lower: 2, median: 3, upper: 4, most: 5, count: 7 };
    expect(valueText({ ...spotOf(1e7, 3), box }, format)).toBe(
      'median 3 s; the middle half of 7 values: 2 s to 4 s; all: 1 s to 5 s',
    );
  });
});
