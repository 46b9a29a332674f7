/** The entry point of a run in one file: reads it from the page, and shows it. */
import '@/theme/mantineStyles';
import '@/theme/moreStyles';
import '@/theme/global.css';
import { MantineProvider } from '@mantine/core';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { theme } from '@/theme/theme';
import { replayed } from '@/run/data/replay';
import { Replay } from './Replay';

const root = document.getElementById('root');
const text = document.getElementById('run')?.textContent;
if (root && text)
  void replayed(text).then(({ run, data }) => {
    document.title = run.title;
    createRoot(root).render(
      <StrictMode>
        <MantineProvider theme={theme} defaultColorScheme="auto">
          <Replay run={run} data={data} />
        </MantineProvider>
      </StrictMode>,
    );
  });
