/** The entry point of the front end: renders the router with its providers. */
import '@fontsource/ibm-plex-sans/latin-400.css';
import '@fontsource/ibm-plex-sans/latin-500.css';
import '@fontsource/ibm-plex-sans/latin-600.css';
import '@fontsource/ibm-plex-mono/latin-400.css';
import './theme/mantineStyles';
import './theme/global.css';
import { MantineProvider } from '@mantine/core';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { onLoggedOut } from './api/client';
import { queryClient } from './api/queries';
import { Navigation } from './components/navigation';
import { ahead, helpFor, Pages } from './routes';
import { Notices } from './shell/Notices';
import { PageErrors } from './shell/PageErrors';
import { Shell } from './shell/Shell';
import { theme } from './theme/theme';

onLoggedOut(() => queryClient.setQueryData(['session'], null));
ahead(location.pathname);

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <MantineProvider theme={theme} defaultColorScheme="auto">
        <QueryClientProvider client={queryClient}>
          <Navigation>
            <PageErrors path="">
              <Shell helpFor={helpFor}>
                <Pages />
              </Shell>
              <Notices />
            </PageErrors>
          </Navigation>
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}
