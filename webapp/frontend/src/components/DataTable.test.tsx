import { MantineProvider } from '@mantine/core';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { type Column, DataTable } from './DataTable';

interface Fruit {
  name: string;
  grams: number;
}

const FRUITS: Fruit[] = [
  { name: 'apple', grams: 180 },
  { name: 'plum', grams: 60 },
  { name: 'pear', grams: 170 },
];

const NAME: Column<Fruit> = { head: 'Name', cell: ({ name }) => name };
const GRAMS: Column<Fruit> = {
  head: 'Grams',
  right: true,
  testId: ({ name }) => `grams-${name}`,
  cell: ({ grams }, at) => `${at}: ${grams}`,
};

const html = (columns: readonly (Column<Fruit> | false)[], step?: number) =>
  renderToStaticMarkup(
    <MantineProvider>
      <DataTable
        rows={FRUITS}
        keyOf={({ name }) => name}
        testId={({ name }) => `row-${name}`}
        columns={columns}
        step={step}
      />
    </MantineProvider>,
  );

it('has a head and a cell in each row for every column, in their order, with the place of the row', () => {
  const table = html([NAME, GRAMS]);
  expect(table.match(/<th/g)).toHaveLength(3); // <thead> is one of them
  expect(table.match(/<td/g)).toHaveLength(6);
  expect(table).toMatch(/data-testid="row-plum"[^]*plum[^]*data-testid="grams-plum"[^>]*>1: 60</);
});

it('leaves out head and cells of a column that is false', () => {
  const table = html([NAME, false]);
  expect(table).not.toContain('Grams');
  expect(table.match(/<td/g)).toHaveLength(3);
});

it('shows so many rows as a step has, and says how many more there are', () => {
  const table = html([NAME], 2);
  expect(table).not.toContain('row-pear');
  expect(table).toContain('Show 1 more of 3');
  expect(html([NAME], 3)).not.toContain('more of');
});
