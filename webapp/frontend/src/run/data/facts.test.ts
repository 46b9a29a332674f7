import { describe, expect, it } from 'vitest';
import { failure, isPlan, number, numberOrNull, numbers, numbersOrNull, rows, text } from './facts';

describe('facts of marks', () => {
  it('are numbers, or the value that stands for none', () => {
    expect([number(2, 7), number(Infinity, 7), number('2', 7), number(undefined, 7)]).toEqual([2, 7, 7, 7]);
    expect([numberOrNull(0), numberOrNull(Infinity), numberOrNull(null)]).toEqual([0, Infinity, null]);
  });

  it('are lists, empty if the fact is missing', () => {
    expect([numbers([1, 2]), numbers(undefined), numbers(3)]).toEqual([[1, 2], [], []]);
    expect(numbersOrNull([0.5, null])).toEqual([0.5, null]);
    expect([rows([[0, 1], [2]]), rows(null)]).toEqual([[[0, 1], [2]], []]);
  });

  it('are texts, empty if the fact is missing', () => {
    expect([text('slow'), text(3), text(null), text(undefined)]).toEqual(['slow', '3', '', '']);
  });

  it('say how a device failed; one without that has joined', () => {
    expect([failure('frozen'), failure('killed'), failure(undefined)]).toEqual([
      'frozen',
      'killed',
      'joined',
    ]);
  });

  it('hold a plan only if it has holdings, work and a layout with its kind', () => {
    const plan = { version: 1, strategy: 'x', holdings: [], work: [], layout: { kind: 'single', device: 0 } };
    expect(isPlan(plan)).toBe(true);
    for (const key of ['holdings', 'work', 'layout'])
      expect(isPlan({ ...plan, [key]: undefined })).toBe(false);
    expect([isPlan({ ...plan, layout: {} }), isPlan(null), isPlan('plan')]).toEqual([false, false, false]);
  });
});
