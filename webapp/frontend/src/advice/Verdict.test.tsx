import { MantineProvider } from '@mantine/core';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import type { Advice } from '@/api/types';
import { Verdict } from './Verdict';

const answer: Advice['answer'] = {
  yes: true,
  sentence: 'Yes: voltage is twice as fast.',
  strategy: 'voltage',
  alone: 2,
  together: 1,
  gain: 2,
};
const shown = (stale: boolean, finished: boolean) =>
  renderToStaticMarkup(
    <MantineProvider>
      <Verdict advice={{ answer, finished }} model="gpt2" stale={stale} />
    </MantineProvider>,
  );

it('says nothing of an earlier model under the name of the new one, nor before every method is predicted', () => {
  expect(shown(false, true)).toContain('Yes: voltage is twice as fast.');
  expect(shown(true, true)).toContain('Predicting every method for gpt2');
  for (const early of [shown(true, true), shown(false, false)]) expect(early).not.toContain('Yes: voltage');
});
