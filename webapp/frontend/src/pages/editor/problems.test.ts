import { describe, expect, it } from 'vitest';
import { star } from '@/cluster/fixtures';
import { byItem, place } from './problems';

describe('a complaint', () => {
  const { spec } = star();

  it('finds its device and field by the path', () => {
    const problem = place({ path: 'devices[1].memory_bytes', message: 'expected more than 0, got 0' }, spec);
    expect(problem).toEqual({
      item: 'device-2',
      field: 'memory_bytes',
      message: 'device-2, memory bytes: expected more than 0, got 0',
    });
  });

  it('finds its link by the index in the sentence', () => {
    const problem = place({ path: '', message: 'links[2] connects device-3 to itself' }, spec);
    expect(problem.item).toBe('device-3--switch-1');
    expect(problem.message).toBe('device-3--switch-1 connects device-3 to itself');
  });

  it('finds its device by the name in the sentence', () => {
    const problem = place(
      { path: 'spec', message: 'device-2 cannot reach device-1: add a link that connects it' },
      spec,
    );
    expect(problem.item).toBe('device-2');
  });

  it('belongs to the cluster if it names no item', () => {
    expect(place({ path: 'name', message: 'missing' }, spec).item).toBe('');
  });

  it('joins others about the same item', () => {
    const problems = ['flop_per_s', 'watts'].map((field) =>
      place({ path: `devices[0].${field}`, message: 'Wrong' }, spec),
    );
    expect(byItem(problems)['device-1']?.split('\n')).toHaveLength(2);
  });
});
