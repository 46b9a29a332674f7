/** The results of an imported study on the page of its experiment: before anything is computed here, and after. */
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import type { StudyLine, StudyResults } from '@/experiment/data/answers';
import type { ExperimentDocument } from '@/experiment/data/types';
import { StudyPanel } from './StudyPanel';

const METRICS = [
  { name: 'latency_s', title: 'Latency', unit: 's', of: 'run', better: 'lower' },
  { name: 'ttft_s', title: 'Time to first token', unit: 's', of: 'run', better: 'lower' },
];
const experiment = {
  factors: [{ name: 'strategy', title: 'Method', values: [{ value: 'single', label: 'One device' }] }],
  seeds: [0],
} as unknown as ExperimentDocument;
const study = {
  file: 'study.zip',
  packed_on: '2026-11-20',
  licence: '',
  environment: { edgeloom: '1.2.3', processor: 'Cortex-A76', cores: '4' },
  imported_at: '2026-11-28T10:00:00Z',
  version: 1,
};
const line: StudyLine = {
  coordinates: { strategy: 'single' },
  seed: 0,
  world: 'predicted',
  theirs: { outcome: 'finished', metrics: { latency_s: 0.25 } },
  ours: null,
  verdict: 'not repeated',
  metric: '',
  study: '',
  repeated: '',
};

function text(results: StudyResults, onRepeat?: () => void): string {
  const client = new QueryClient();
  client.setQueryData(['metrics'], METRICS);
  const html = renderToStaticMarkup(
    <MantineProvider>
      <QueryClientProvider client={client}>
        <StudyPanel
          study={study}
          results={results}
          experiment={experiment}
          metric="latency_s"
          onRepeat={onRepeat}
        />
      </QueryClientProvider>
    </MantineProvider>,
  );
  return html
    .replace(/<style[^>]*>.*?<\/style>/gs, '')
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ');
}

describe('the results of a study', () => {
  it('are shown as their authors before anything is computed here, with a button to repeat them', () => {
    const shown = text({ told: [], lines: [line], may_repeat: true }, () => {});
    expect(shown).toContain('packed on 2026-11-20, Cortex-A76, 4 cores, EdgeLoom 1.2.3.');
    expect(shown).toMatch(/One device predicted 250 ms – not repeated/);
    expect(shown).toContain('Nothing is computed here yet: Repeat computes the same points.');
    expect(shown).toContain(' Repeat ');
  });

  it('stand beside ours, with the value that decided where the two differ', () => {
    const told = ['0 of 1 are the same: 0 of 1 predicted points exactly.', '1 differ.'];
    const ours = { outcome: 'finished', metrics: { latency_s: 0.25 } };
    const differs = {
      ...line,
      ours,
      verdict: 'differs' as const,
      metric: 'ttft_s',
      study: '7 ms',
      repeated: '8 ms',
    };
    const shown = text({ told, lines: [differs], may_repeat: false });
    expect(shown).toContain(told.join(' '));
    expect(shown).toContain('250 ms 250 ms differs Time to first token: 7 ms in the study, 8 ms here');
    expect(shown).not.toContain('Repeat');
  });

  it('say how a run ended that has no value', () => {
    const theirs = { outcome: 'no_plan', metrics: {} };
    expect(text({ told: [], lines: [{ ...line, theirs }], may_repeat: false })).toContain(
      'predicted no plan –',
    );
  });
});
