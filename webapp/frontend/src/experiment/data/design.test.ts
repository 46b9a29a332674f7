import { describe, expect, it } from 'vitest';
import { FIRST_DRAFT } from '@/run/request/draft';
import { star } from '@/cluster/fixtures';
import type { StrategyRow } from '@/api/types';
import {
  anotherOf,
  condition,
  type Design,
  factorsOf,
  type FactorOption,
  FIRST_VIEW,
  lacks,
  levelsOf,
  newFactor,
  numPoints,
  slug,
  toExperiment,
  viewOf,
  withBestPlanners,
} from './design';

const rate: FactorOption = {
  path: 'cluster.links[*].bit_per_s',
  name: 'rate',
  title: 'Rate of the links',
  group: 'Links',
  unit: 'bit/s',
  kind: 'number',
  targets: ['a--b', 'b--c'],
  choices: [],
  current: 1e8,
  low: 1e3,
  high: null,
};
const devices: FactorOption = {
  ...rate,
  path: 'cluster.num_devices',
  name: 'devices',
  title: 'Number of devices',
  unit: '',
  kind: 'whole',
  targets: [],
  current: 3,
  low: 1,
  high: 3,
};
const cluster = star().spec;
const fourMethods: Design = {
  title: 'Four methods',
  run: { ...FIRST_DRAFT, cluster_id: 1 },
  methods: ['single', 'voltage', 'gpipe', 'galaxy'].map((strategy) => ({
    strategy,
    title: strategy,
    params: {},
  })),
  factors: [{ ...newFactor(rate), text: '10, 50, 100, 500', unit: 'Mbit/s' }],
  repeats: 3,
  view: FIRST_VIEW,
};

describe('the four-methods question', () => {
  it('is 48 points: four methods, four rates, three seeds', () => {
    expect(numPoints(fourMethods)).toBe(48);
    const { factors, seeds } = toExperiment(fourMethods, cluster, undefined);
    expect(factors.map(({ name, values }) => [name, values.map(({ value }) => value)])).toEqual([
      ['strategy', ['single', 'voltage', 'gpipe', 'galaxy']],
      ['rate', [1e7, 5e7, 1e8, 5e8]],
    ]);
    expect(seeds).toEqual([0, 1, 2]);
  });

  it('is shown by rate on a logarithmic axis, one line per method', () => {
    expect(viewOf(factorsOf(fourMethods), FIRST_VIEW)).toMatchObject({
      kind: 'lines',
      x: 'rate',
      series: 'strategy',
      facet: '',
      where: [],
      log_x: true,
    });
  });

  it('has the cluster itself in its base, so that a later edit of the drawing changes nothing', () => {
    expect(toExperiment(fourMethods, cluster, undefined).base.cluster).toBe(cluster);
  });
});

describe('a factor', () => {
  it('starts with half, once and twice what the base has, within its bounds', () => {
    expect(newFactor(rate)).toMatchObject({ text: '50, 100, 200', unit: 'Mbit/s' });
    expect(newFactor(devices)).toMatchObject({ text: '2, 3' });
  });

  it('changes all links by one path, some by a path each', () => {
    const some = { ...fourMethods, factors: [{ ...fourMethods.factors[0]!, targets: ['b--c'] }] };
    expect(factorsOf(fourMethods)[1]!.paths).toEqual(['cluster.links[*].bit_per_s']);
    expect(factorsOf(some)[1]).toMatchObject({
      title: 'Rate of the links (b--c)',
      paths: ['cluster.links[b--c].bit_per_s'],
    });
  });

  it('of choices needs one of them', () => {
    const model: FactorOption = {
      ...devices,
      kind: 'choice',
      choices: [{ value: 'x', label: 'X' }],
      current: 'x',
    };
    expect(newFactor(model).chosen).toEqual(['x']);
    expect(levelsOf({ ...newFactor(model), chosen: [] }).problem).toBe('Choose at least one value.');
  });
});

describe('a design', () => {
  it('says what it lacks', () => {
    expect(lacks(fourMethods, cluster)).toBeNull();
    expect(lacks({ ...fourMethods, methods: [] }, cluster)).toBe('Tick at least one strategy.');
    expect(
      lacks({ ...fourMethods, factors: [{ ...fourMethods.factors[0]!, text: '10, x' }] }, cluster),
    ).toContain('Rate of the links: “x” is no number');
  });

  it('gives the parameters of a method to that method alone', () => {
    const [level] = factorsOf({
      ...fourMethods,
      methods: [{ strategy: 'voltage', title: 'Voltage, trimmed', params: { causal_trim: true } }],
    })[0]!.values;
    expect(level).toEqual({
      value: 'voltage',
      label: 'Voltage, trimmed',
      set: { params: { causal_trim: true } },
    });
  });
});

describe('the figure', () => {
  const three: Design = {
    ...fourMethods,
    factors: [...fourMethods.factors, { ...newFactor(devices), text: '2, 3' }],
  };

  it('has a facet per level of a third factor', () => {
    expect(viewOf(factorsOf(three), FIRST_VIEW)).toMatchObject({
      x: 'rate',
      series: 'strategy',
      facet: 'devices',
    });
  });

  it('fixes by a condition what no axis shows', () => {
    expect(viewOf(factorsOf(three), { ...FIRST_VIEW, facet: '' }).where).toEqual(['devices == 2']);
    expect(viewOf(factorsOf(three), { ...FIRST_VIEW, facet: '', fixed: { devices: 3 } }).where).toEqual([
      'devices == 3',
    ]);
  });

  it('has bars where x is a name', () => {
    expect(viewOf(factorsOf({ ...fourMethods, factors: [] }), FIRST_VIEW)).toMatchObject({
      kind: 'bars',
      x: 'strategy',
    });
  });

  it('forgets an axis whose factor is gone', () => {
    expect(viewOf(factorsOf(fourMethods), { ...FIRST_VIEW, x: 'devices' }).x).toBe('rate');
  });

  it('quotes names in conditions', () => {
    expect(condition('model', "it's")).toBe("model == 'it\\'s'");
  });
});

describe('the name of an experiment', () => {
  it('follows from its title', () => {
    expect(slug('Four methods, 10–500 Mbit/s')).toBe('four-methods-10-500-mbit-s');
    expect(slug('4 × 4')).toBe('');
  });
});

describe('one strategy with two sets of parameters', () => {
  const voltage = { strategy: 'voltage', title: 'Voltage', params: {} };
  const trimmed = { ...anotherOf(voltage, [voltage]), params: { causal_trim: true } };
  const design: Design = { ...fourMethods, methods: [voltage, trimmed] };

  it('has two levels that differ by their titles', () => {
    expect(factorsOf(design)[0]!.values).toEqual([
      { label: 'Voltage', set: { strategy: 'voltage' } },
      { label: 'Voltage 2', set: { strategy: 'voltage', params: { causal_trim: true } } },
    ]);
    expect(numPoints(design)).toBe(24);
  });

  it('needs titles that differ', () => {
    expect(lacks(design, cluster)).toBeNull();
    expect(lacks({ ...design, methods: [voltage, { ...trimmed, title: ' Voltage' }] }, cluster)).toBe(
      'Two strategies are called Voltage: rename one.',
    );
    expect(anotherOf(trimmed, design.methods).title).toBe('Voltage 3');
  });
});

describe('the best plans beside the rules of the papers', () => {
  const row = (name: string, planner?: string) =>
    ({
      name,
      params_schema: { properties: planner ? { planner: { type: 'string', default: planner } } : {} },
    }) as unknown as StrategyRow;
  const rows = [row('single'), row('galaxy', 'paper'), row('gpipe', 'best')];
  const method = (strategy: string, params = {}) => ({ strategy, title: strategy, params });

  it('are added to methods that follow one, once', () => {
    const galaxy = method('galaxy', { division: 'exact' });
    const all = withBestPlanners([method('single'), method('galaxy'), method('gpipe'), galaxy], rows);
    expect(all.map(({ title }) => title)).toEqual(['single', 'galaxy', 'galaxy, best', 'gpipe', 'galaxy']);
    expect(all[2]).toMatchObject({ strategy: 'galaxy', params: { planner: 'best' } });
    expect(withBestPlanners(all, rows)).toEqual(all);
  });

  it('are not added to a plan made by hand, but to a rule that was chosen', () => {
    const byHand = method('galaxy', { plan: { devices: [] } });
    expect(withBestPlanners([byHand], rows)).toEqual([byHand]);
    expect(withBestPlanners([method('gpipe', { planner: 'paper' })], rows)).toHaveLength(2);
  });
});
