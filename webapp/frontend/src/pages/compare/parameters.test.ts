import { describe, expect, it } from 'vitest';
import { comparisonOf, SWEEP } from './fixtures';
import { parametersOf, repeatsOf, telling, toldText } from './parameters';

const paths = (found: readonly { path: string }[]) => found.map(({ path }) => path);

describe('the parameters of compared runs', () => {
  it('are those that differ but the seed, the same field of several links together', () => {
    const found = parametersOf(SWEEP);
    expect(found.map(({ title }) => title)).toEqual(['strategy', 'rate of 2 links']);
    expect(found.map(({ isNumeric }) => isNumeric)).toEqual([false, true]);
    expect(toldText(found[1]!, 2)).toBe('rate of links 100 Mbit/s');
    expect(toldText(found[0]!, 2)).toBe('voltage');
  });

  it('keep links apart whose rates change differently, and are then called by their paths', () => {
    const found = parametersOf(
      comparisonOf({
        'cluster.links[a--hub].bit_per_s': [1e7, 1e8],
        'cluster.links[b--hub].bit_per_s': [1e8, 1e7],
      }),
    );
    expect(found.map(({ title }) => title)).toEqual([
      'cluster.links[a--hub].bit_per_s',
      'cluster.links[b--hub].bit_per_s',
    ]);
  });

  it('are no numbers where a run has none', () => {
    const [ratio] = parametersOf(comparisonOf({ 'params.chunks': [4, null] }));
    expect(ratio!.isNumeric).toBe(false);
    expect(ratio!.texts).toEqual(['4', '–']);
  });
});

describe('repeats', () => {
  it('agree in all but the seed, and in words that change nothing', () => {
    expect(repeatsOf(SWEEP)).toEqual([[0, 1], [2, 3], [4, 5], [6]]);
    const words = comparisonOf({
      'cluster.description': ['at home', 'here'],
      'cluster.devices[desk].title': ['Desk', 'My desk'],
    });
    expect(repeatsOf(words)).toEqual([[0, 1]]);
  });

  it('are not a prediction and a measurement, nor runs with another parameter', () => {
    expect(repeatsOf(comparisonOf({ world: ['simulated', 'real'] }))).toEqual([[0], [1]]);
    expect(repeatsOf(comparisonOf({ 'params.ratio': ['even', 'even', null] }))).toEqual([[0, 1], [2]]);
    expect(repeatsOf(comparisonOf({ 'params.overlap': [false, 0] }))).toEqual([[0], [1]]);
  });
});

describe('what tells groups apart', () => {
  const comparison = comparisonOf({
    strategy: ['gpipe', 'gpipe', 'voltage', 'voltage'],
    'cluster.name': ['lab', 'home', 'lab', 'home'],
    'cluster.source': ['desk', 'tv', 'desk', 'tv'],
  });
  const parameters = parametersOf(comparison);

  it('are as few parameters as needed, the first of those that say the same', () => {
    expect(paths(telling(comparison, repeatsOf(comparison), parameters))).toEqual([
      'strategy',
      'cluster.name',
    ]);
  });

  it('is nothing where the given parameters suffice', () => {
    expect(telling(comparison, repeatsOf(comparison), parameters, parameters)).toEqual([]);
    expect(paths(telling(comparison, repeatsOf(comparison), parameters, [parameters[0]!]))).toEqual([
      'cluster.name',
    ]);
  });
});
