import { describe, expect, it } from 'vitest';
import type { Scenario } from '@/api/types';
import { linksOf, onLink } from './scenario';

const scenario: Scenario = {
  changes: [
    { kind: 'set_rate', at_s: 0, link: 'a--b', bit_per_s: 1e6, direction: 'both' },
    { kind: 'link_down', at_s: 1, link: 'a--b' },
    { kind: 'drop_device', at_s: 2, device: 'b' },
  ],
};

describe('a trace', () => {
  it('may drive any link of the cluster, and touches no device', () => {
    expect(linksOf(scenario)).toEqual(['a--b']);
    const moved = onLink(scenario, 'c--d');
    expect(linksOf(moved)).toEqual(['c--d']);
    expect(moved.changes[2]).toEqual(scenario.changes[2]);
  });
});
