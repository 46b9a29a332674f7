import { MantineProvider } from '@mantine/core';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { FigureLegend } from './FigureLegend';
import { figure, lineOf, spotOf } from './fixtures';
import { placeSpots } from './geometry';
import { NOTHING_HIDDEN } from './model';
import { xScale, yScale } from './scales';

const legend = (of: typeof figure.legend) =>
  renderToStaticMarkup(
    <MantineProvider>
      <FigureLegend data={{ ...figure, legend: of }} hidden={NOTHING_HIDDEN} onHidden={() => undefined} />
    </MantineProvider>,
  );

it('names in its legend what the server names, in its order', () => {
  const series = [{ label: 'single', name: 'single, gpipe', place: 0 }];
  const page = legend({ series, sources: [{ source: 'emulated', mark: 'filled' }], left_out: 'not valid' });
  expect(page).toMatch(/data-testid="legend-single"[^]*single, gpipe[^]*legend-emulated[^]*not valid/);
  expect(legend({ series: [], sources: [], left_out: '' })).not.toMatch(/<button|not-valid/);
});

it('places no mark of a line that another one stands for', () => {
  const spots = [spotOf(1e7, 2)];
  const lines = [
    lineOf('single', 'predicted', spots),
    { ...lineOf('gpipe', 'predicted', spots), same_as: 'single', drawn: false },
  ];
  const data = { ...figure, panels: [{ label: '', crossings: [], lines }] };
  const frame = { x: xScale(data, 400), y: yScale(data, NOTHING_HIDDEN, 200) };
  expect(placeSpots(data, 0, NOTHING_HIDDEN, frame).map(({ label }) => label)).toEqual(['single']);
});
