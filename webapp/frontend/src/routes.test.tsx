import { existsSync, readFileSync } from 'node:fs';
import { MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { Router } from 'wouter';
import { addressesOf, helpFor, PAGES, Pages } from './routes';

function html(address: string): string {
  return renderToStaticMarkup(
    <MantineProvider>
      <QueryClientProvider client={new QueryClient()}>
        <Router ssrPath={address}>
          <Pages />
        </Router>
      </QueryClientProvider>
    </MantineProvider>,
  );
}

describe('an address', () => {
  const withNumber = PAGES.map(({ path }) => path).filter((path) => path.includes(':'));

  it.each(withNumber)('like %s has a page only if its number is one', (path) => {
    expect(addressesOf(path).exec(path.replace(':id', '17'))?.groups).toEqual({ id: '17' });
    for (const wrong of ['%E0%A4%A', 'abc', '1e3', '0x10', '1.0', '-1', '0', '9'.repeat(30)]) {
      const address = path.replace(':id', wrong);
      expect(html(address)).toContain(`Nothing is at ${address}:`);
    }
  });

  it('that no page has is named', () => {
    expect(html('/nowhere/at/all')).toContain('Nothing is at /nowhere/at/all:');
    expect(html('/runs/1/more')).toContain('There is no such page');
  });
});

describe('the question mark', () => {
  it.each(['/', ...PAGES.map(({ path }) => path.replace(':id', '17'))])(
    'of %s leads to a text',
    (address) => {
      const [name, anchor] = helpFor(address).replace('/docs/', '').split('#');
      const file = new URL(`../../../docs/${name}.md`, import.meta.url);
      expect(existsSync(file), file.pathname).toBe(true);
      const anchors = [...readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
        title!
          .toLowerCase()
          .replaceAll(/[^\w\- ]/g, '')
          .replaceAll(' ', '-'),
      );
      if (anchor) expect(anchors).toContain(anchor);
    },
  );
});
