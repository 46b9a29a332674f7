import { MantineProvider } from '@mantine/core';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { FigureLegend } from './FigureLegend';
import { lineOf, figure, spotOf } from './fixtures';
import { drawn, NOTHING_HIDDEN } from './model';

const spots = [spotOf(1e7, 2)];
const data = {
  ...figure,
  series: ['single', 'gpipe', 'voltage'],
  panels: [
    {
      label: '',
      crossings: [],
      lines: [
        { ...lineOf('single', 'predicted', spots), also: ['gpipe'] },
        { ...lineOf('gpipe', 'predicted', spots), same_as: 'single' },
        lineOf('voltage', 'predicted', spots),
      ],
    },
  ],
};

it('draws methods that are one computation once, under all of their names, and leaves the rows of a heat map', () => {
  const [panel] = drawn(data).panels;
  expect(panel?.lines.map(({ label }) => label)).toEqual(['single', 'voltage']);
  const legend = renderToStaticMarkup(
    <MantineProvider>
      <FigureLegend data={drawn(data)} hidden={NOTHING_HIDDEN} onHidden={() => undefined} />
    </MantineProvider>,
  );
  expect(legend).toContain('single, gpipe');
  expect(legend).not.toContain('data-testid="legend-gpipe"');
  expect(drawn({ ...data, kind: 'heatmap' }).panels[0]?.lines).toHaveLength(3);
});
