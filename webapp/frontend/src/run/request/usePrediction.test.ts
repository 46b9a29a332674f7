import { describe, expect, it } from 'vitest';
import { asPredicted } from './usePrediction';
import { FIRST_DRAFT, FIRST_WORK, toRequest } from './draft';

const asked = (patch: object) =>
  JSON.stringify(asPredicted(toRequest({ ...FIRST_DRAFT, ...patch }, undefined)));

describe('the question of a prediction', () => {
  it('is not another one for labels or a dilation', () => {
    const plain = asked({});
    expect(asked({ name: 'n', notes: 'm', tags: ['t'] })).toBe(plain);
    expect(asked({ dilationKind: 'fixed', dilation: 7 })).toBe(plain);
  });

  it('is another one at native speed, and for what is computed', () => {
    const plain = asked({});
    expect(asked({ dilationKind: 'native' })).not.toBe(plain);
    expect(asked({ workload: { ...FIRST_WORK, new_tokens: 25 } })).not.toBe(plain);
  });
});
