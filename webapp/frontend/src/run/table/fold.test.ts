import { expect, it } from 'vitest';
import { runRow } from './fixtures';
import { folded, type Item } from './fold';

const of = (id: number) => ({ experiment: { id, title: `experiment ${id}` } });
const runs = [runRow(6, of(1)), runRow(5), runRow(4, of(1)), runRow(3, of(2)), runRow(2, of(1))];
const text = (item: Item) =>
  item.kind === 'run' ? `${item.isPoint ? '  ' : ''}${item.run.id}` : `${item.title}: ${item.runs.length}`;

it('shows the runs of an experiment as one row, at the place of the first, and where it is open below that', () => {
  expect(folded(runs, new Set()).map(text)).toEqual(['experiment 1: 3', '5', '3']);
  expect(folded(runs, new Set([1])).map(text)).toEqual(['experiment 1: 3', '  6', '  4', '  2', '5', '3']);
});
