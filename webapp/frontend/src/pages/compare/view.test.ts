import { describe, expect, it } from 'vitest';
import { comparisonOf, SWEEP } from './fixtures';
import {
  addressOf,
  chosenIn,
  comparedOf,
  NONE,
  RUN,
  spansDecades,
  unknownIn,
  usualHue,
  usualX,
  viewOf,
} from './view';

const RATES = 'cluster.links[a--hub].bit_per_s';
const usual = (params: Record<string, unknown[]>) => {
  const compared = comparedOf(
    comparisonOf(params, { latency_s: Array.from({ length: 4 }, (_, at) => at + 1) }),
  );
  const x = usualX(compared);
  return [x, usualHue(compared, x)];
};

describe('the axes of a comparison', () => {
  it('are the number that was varied and the strategy, as lines', () => {
    expect(viewOf(comparedOf(SWEEP), {}).view).toEqual({
      metric: 'latency_s',
      x: RATES,
      hue: 'strategy',
      kind: 'lines',
      logX: true,
      logY: false,
    });
  });

  it('are bars per strategy if only that differs', () => {
    const compared = comparedOf(comparisonOf({ strategy: ['gpipe', 'galaxy'] }, { latency_s: [1, 2] }));
    expect(viewOf(compared, {}).view).toMatchObject({ x: 'strategy', hue: NONE, kind: 'bars' });
  });

  it('take the cluster by its name if several of its numbers differ', () => {
    const wholesale = {
      strategy: ['gpipe', 'gpipe', 'galaxy', 'galaxy'],
      'cluster.name': ['lab', 'home', 'lab', 'home'],
      'cluster.devices[desk].flop_per_s': [1, 2, 1, 2],
      'cluster.devices[desk].memory_bytes': [5, 3, 5, 3],
    };
    expect(usual(wholesale)).toEqual(['cluster.name', 'strategy']);
  });

  it('take a number of the cluster that was varied alone, also under another name', () => {
    const varied = {
      'cluster.name': ['lab', 'slow', 'lab', 'slow'],
      [RATES]: [2, 1, 2, 1],
      seed: [0, 0, 1, 1],
    };
    expect(usual(varied)).toEqual([RATES, NONE]);
  });

  it('take the strategy rather than a number that follows from it', () => {
    const follows = {
      strategy: ['gpipe', 'galaxy', 'gpipe', 'galaxy'],
      'params.chunks': [4, 8, 4, 8],
      seed: [0, 0, 1, 1],
    };
    expect(usual(follows)).toEqual(['strategy', NONE]);
  });

  it('colour by what keeps runs apart that are no repeats', () => {
    const two = {
      'workload.new_tokens': [8, 16, 8, 16],
      'model.name': ['gpt2', 'gpt2', 'opt', 'opt'],
      'model.num_layers': [12, 12, 24, 24],
    };
    expect(usual(two)).toEqual(['workload.new_tokens', 'model.name']);
  });

  it('are never a list by themselves', () => {
    const trace = { 'workload.trace': [null, [], null, []], 'params.chunks': ['a', 'a', 'b', 'b'] };
    expect(usual(trace)).toEqual(['params.chunks', 'workload.trace']);
    expect(usual({ 'workload.trace': [null, [], [1], [2]] })[0]).toBe(RUN);
  });

  it('have a colour that is not the x axis', () => {
    const { view } = viewOf(comparedOf(SWEEP), { x: RATES, hue: RATES });
    expect(view.hue).toBe('strategy');
    expect(viewOf(comparedOf(SWEEP), { x: 'strategy', hue: 'strategy' }).view.hue).toBe(RATES);
  });

  it('offer no metric that only one run has, and none that is 0 in all', () => {
    const compared = comparedOf(
      comparisonOf(
        { strategy: ['gpipe', 'lime', 'single'] },
        { load_s: [0, 0, 0], ttft_s: [1, null, null], latency_s: [1, 0, null] },
      ),
    );
    expect(compared.metrics.map(({ name }) => name)).toEqual(['latency_s']);
  });

  it('are not logarithmic where a value has no place on such an axis, with a sentence if that was asked for', () => {
    const losses = comparedOf(
      comparisonOf({ 'cluster.links[a--b].loss_frac': [0, 0.01, 0.5] }, { latency_s: [1, 2, 3] }),
    );
    expect(viewOf(losses, {})).toMatchObject({ view: { logX: false }, problems: [] });
    expect(viewOf(losses, { logX: true })).toMatchObject({
      view: { logX: false },
      problems: [
        'The address asks for a logarithmic x axis, which needs numbers above 0 and loss of links has others: the axis is not logarithmic.',
      ],
    });
    expect(viewOf(comparedOf(SWEEP), { logX: true })).toMatchObject({ view: { logX: true }, problems: [] });
  });

  it('show every run by itself if all are repeats of one', () => {
    expect(usual({ seed: [0, 1, 2, 3] })).toEqual([RUN, NONE]);
  });

  it('are logarithmic over at least one decade of positive numbers', () => {
    expect(spansDecades([1e6, 5e6, 1e7])).toBe(true);
    expect(spansDecades([1e6, 9e6])).toBe(false);
    expect(spansDecades([0, 1e6])).toBe(false);
    expect(spansDecades(['1', '100'])).toBe(false);
  });
});

describe('the address of a comparison', () => {
  it('has every choice, and nothing that was not chosen', () => {
    const chosen = { metric: 'ttft_s', x: RATES, hue: NONE, kind: 'boxes' as const, logX: false, logY: true };
    expect(chosenIn(new URLSearchParams(addressOf(chosen)))).toEqual(chosen);
    expect(addressOf({ x: RUN })).toEqual({ x: RUN });
  });

  it('decides over the logarithmic axes', () => {
    const logs = (address: string) => {
      const { view } = viewOf(comparedOf(SWEEP), chosenIn(new URLSearchParams(address)));
      return [view.logX, view.logY];
    };
    expect(logs('')).toEqual([true, false]);
    expect(logs('logx=0&logy=1')).toEqual([false, true]);
  });

  it('with a word that no figure knows gets a sentence', () => {
    expect(unknownIn(new URLSearchParams('as=pies&logx=yes&logy=1'))).toEqual([
      'The address has as=pies, expected lines or bars or boxes: it is ignored.',
      'The address has logx=yes, expected 0 or 1: it is ignored.',
    ]);
    expect(unknownIn(new URLSearchParams('as=bars&logx=0&x=seed'))).toEqual([]);
  });

  it('with a colour in which these runs do not differ gets a sentence', () => {
    const { view, problems } = viewOf(comparedOf(SWEEP), { hue: 'model.name' });
    expect(view.hue).toBe('strategy');
    expect(problems).toEqual([
      'The address asks for model.name as the colour, in which these runs do not differ: something else is shown.',
    ]);
  });

  it('that asks for what these runs do not have is answered with a sentence', () => {
    const { view, problems } = viewOf(comparedOf(SWEEP), { x: 'workload.new_tokens', metric: 'energy_j' });
    expect(view).toMatchObject({ x: RATES, metric: 'latency_s' });
    expect(problems).toEqual([
      'The address asks for energy_j as the value, which no two of these runs have: something else is shown.',
      'The address asks for workload.new_tokens on the x axis, in which these runs do not differ: something else is shown.',
    ]);
  });
});
