import { MantineProvider } from '@mantine/core';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { LayoutOf } from '@/api/types';
import { RunData } from '@/run/data/runData';
import { cluster, model } from '@/run/data/fixtures';
import { ExpertsView } from './ExpertsView';

const layout: LayoutOf<'experts'> = { kind: 'experts', host: 0, group: [0, 1], experts: [0, 6, 8] };
const mixture = { ...model, num_experts: 8, experts_per_token: 2 };

describe('ExpertsView', () => {
  it('shows who has which experts, and what the newest mark says of their use', () => {
    const data = new RunData(cluster, mixture);
    for (const [time_s, pairs] of [
      [1, [1, 1]],
      [2, [12, 4]],
    ] as const)
      data.methodMarks.push({ time_s, name: 'experts_used', device: 'a', facts: { pairs: [...pairs] } });
    const { devices } = cluster;
    const html = renderToStaticMarkup(
      <MantineProvider>
        <ExpertsView {...{ layout, model: mixture, devices, data }} holdings={[]} version={0} />
      </MantineProvider>,
    );
    expect(html).toMatch(/· 6<.*· 2<.*· 75\s?%<.*· 25\s?%</);
  });
});
