import { describe, expect, it } from 'vitest';
import { star } from '@/cluster/fixtures';
import { FIRST_DRAFT } from '@/run/request/draft';
import { type Design, type FactorOption, FIRST_VIEW, type Method, newFactor, toExperiment } from './design';
import { reopened } from './reopen';
import type { ExperimentDocument } from './types';

const cluster = star().spec;
const rate: FactorOption = {
  path: 'cluster.links[*].bit_per_s',
  name: 'rate',
  title: 'Rate of the links',
  group: 'Links',
  unit: 'bit/s',
  kind: 'number',
  targets: ['device-1--switch-1', 'device-2--switch-1', 'device-3--switch-1'],
  choices: [],
  current: 1e8,
  low: null,
  high: null,
};
const design: Design = {
  title: 'By rate',
  run: { ...FIRST_DRAFT, cluster, promptKind: 'length', seed: 5 },
  methods: [
    { strategy: 'single', title: 'Single device', params: {} },
    { strategy: 'voltage', title: 'Trimmed', params: { causal_trim: true } },
  ],
  factors: [{ ...newFactor(rate), text: '10, 50', targets: ['device-2--switch-1'] }],
  repeats: 3,
  view: { ...FIRST_VIEW, metric: 'tpot_s', logY: true },
};
const document = toExperiment(design, cluster, undefined);
const again = (changed: Partial<ExperimentDocument> = {}) => reopened({ ...document, ...changed }, [], []);

describe('an experiment that is opened again', () => {
  it('means the same experiment as the design that it came from', () => {
    expect(toExperiment(again().design!, cluster, undefined)).toEqual(document);
  });

  it('computes in whole numbers, over links of boards as the network is, as the run that it came from', () => {
    const boards = {
      ...cluster,
      devices: cluster.devices.map((device) => ({ ...device, node: device.name })),
    };
    const given = { board_links: 'given', weight_bits: 8, activation_bits: 8 } as const;
    const run = { ...design.run, ...given, cluster: boards, dilationKind: 'nodes' } as const;
    const stored = toExperiment({ ...design, run }, boards, undefined);
    expect(stored.base).toMatchObject({ ...given, dilation: 'auto' });
    expect(toExperiment(reopened(stored, [], []).design!, boards, undefined)).toEqual(stored);
    expect(toExperiment({ ...design, run }, cluster, undefined).base).not.toHaveProperty('board_links');
  });

  it('keeps what its factor of strategies is called, as its tables and claims name it', () => {
    const [strategies, ...others] = document.factors;
    const stored = { ...document, factors: [{ ...strategies!, name: 'method' }, ...others] };
    const { design: found } = reopened(stored, [], []);
    const [first] = toExperiment(found!, cluster, undefined, stored).factors;
    expect(first).toMatchObject({ name: 'method', paths: ['strategy'] });
    expect(toExperiment({ ...found!, view: FIRST_VIEW }, cluster, undefined).figures[0]).toMatchObject({
      x: 'rate',
      series: 'method',
    });
  });

  it('may have one strategy twice, with different parameters', () => {
    const [single, trimmed] = design.methods as [Method, Method];
    const twice = { ...design, methods: [single, trimmed, { ...trimmed, title: 'Voltage', params: {} }] };
    const stored = toExperiment(twice, cluster, undefined);
    expect(reopened(stored, [], []).design!.methods).toEqual(twice.methods);
  });

  it.each([
    [{ factors: [] }, 'it has no factor for the strategy'],
    [{ zipped: [['rate', 'strategy']] }, 'its points are not the full grid of its factors'],
    [{ seeds: [0, 2] }, 'its seeds are not consecutive'],
    [{ base: { ...document.base, cluster: 'gone' } }, 'there is no stored cluster gone'],
    [
      {
        factors: [
          document.factors[0]!,
          { ...document.factors[1]!, values: [{ label: 'x', set: { model: 'y' } }] },
        ],
      },
      'a value of Rate of the links (device-2--switch-1) sets several fields',
    ],
  ])('is refused by one sentence where this page would lose something', (changed, reason) => {
    expect(again(changed).problem).toContain(`because ${reason}:`);
  });
});
