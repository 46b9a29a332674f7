import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { Router } from 'wouter';
import { describe, expect, it } from 'vitest';
import type { FigureVerdict, Reproductions } from '@/experiment/data/answers';
import { Summary } from './ReproductionsPage';
import { VerdictTable } from './VerdictTable';

function html(content: ReactNode): string {
  return renderToStaticMarkup(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <Router ssrPath="/">{content}</Router>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

const summary: Reproductions = {
  papers: [
    {
      paper: 'voltage',
      title: 'Voltage',
      source: 'Hu, Li. ICDCS 2024',
      strategy: 'voltage',
      must_know: ['Every device holds all layers.'],
      figures: 14,
      in_experiments: 8,
      put_in: 1,
      repeats: 0,
      checked: 4,
      left_out: 1,
      compared: 9,
      confirmed: 8,
      contradicted: 1,
      headlines: [
        {
          paper: 'voltage',
          claim: 'Six machines take a third less time.',
          where: 'Fig. 4',
          published: '32.1 %',
          ours: '28 %',
          state: 'contradicted',
          why: 'The rate is another one.',
          cause: 'project',
        },
      ],
    },
  ],
  experiments: [
    {
      paper: 'voltage',
      name: 'voltage-fig4',
      title: 'One to six machines',
      description: 'Figure 4.',
      figures: 4,
      points: 39,
      counts: { confirmed: 3, contradicted: 1 },
      repeats: 1,
      worlds: ['predicted'],
      code_versions: ['abc'],
      assumptions: ['200 words are 200 tokens.'],
    },
  ],
  others: [
    { kind: 'checked', reason: 'sizes of the models', figures: 4, counts: { confirmed: 4 } },
    { kind: 'left out', reason: 'no number is published', figures: 1, counts: { 'cannot be checked': 1 } },
  ],
};

const verdict: FigureVerdict = {
  id: 'voltage.fig4.ViT',
  experiment: 'voltage-fig4',
  world: 'predicted',
  where: 'Fig. 4',
  what: 'ViT, six machines',
  published: '29.1 %',
  ours: '23 %',
  deviation: -0.21,
  state: 'near',
  why: 'The machines are not named.',
  cause: '',
  repeats: '',
};

describe('the page of reproductions', () => {
  it('accounts for every figure of a paper and gives the reason for those that no experiment has', () => {
    const page = html(<Summary {...summary} only={null} />);
    expect(page).toContain(
      '14 figures: 8 in experiments, 1 used as an input, 4 checked by tests, 1 left out',
    );
    expect(page).toContain('aria-label="3 confirmed, 1 contradicted"');
    expect(page).toContain('<b>1</b><span>no number is published</span>');
  });

  it('shows one paper alone, with what its reader must know', () => {
    const other = {
      ...summary.papers[0]!,
      paper: 'lime',
      title: 'LIME',
      must_know: ['Caches outgrow memory.'],
    };
    const page = html(<Summary {...summary} papers={[...summary.papers, other]} only="lime" />);
    expect(page).toContain('Caches outgrow memory.');
    expect(page).toContain('reproduce lime');
    expect(page).not.toContain('Every device holds all layers.');
    expect(page).not.toContain('no number is published');
  });

  it('says so in place of a bar where all figures of an experiment repeat others', () => {
    const repeating = summary.experiments.map((one) => ({ ...one, counts: {}, repeats: one.figures }));
    const page = html(<Summary {...summary} experiments={repeating} only={null} />);
    expect(page).toContain('not counted: all repeat others');
    expect(page).not.toContain('aria-label=""');
  });

  it('has at its head what is confirmed and what is contradicted, and the first claims with their cause', () => {
    const page = html(<Summary {...summary} only={null} />);
    expect(page).toContain('8 of 9 independent figures confirmed, 1 contradicted');
    expect(page).toContain('Six machines take a third less time.');
    expect(page).toContain('The rate is another one. EdgeLoom makes the difference, not the paper.');
  });

  it('shows a published value beside ours, how far they are apart and why', () => {
    const table = html(
      <VerdictTable verdicts={[verdict, { ...verdict, id: 'other', repeats: 'another' }]} />,
    );
    for (const text of ['29.1 %', '23 %', '−21 %', 'near', 'The machines are not named.'])
      expect(table).toContain(text);
    expect(table.match(/, repeats/g)).toHaveLength(1);
    expect(table).not.toContain('>World<');
  });

  it('names the world where an experiment has several', () => {
    const table = html(<VerdictTable verdicts={[verdict, { ...verdict, world: 'emulated' }]} />);
    expect(table).toContain('>World<');
    expect(table).toContain('>predicted<');
    expect(table).toContain('>emulated<');
  });
});
