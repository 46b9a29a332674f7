import { expect, test } from 'vitest';
import { offPercent, wholePath } from './nativeParts';

test('the whole path is the sum of its parts, without the waiting beside it', () => {
  const parts = [
    { name: 'compute' as const, measured_s: 2, predicted_s: 1 },
    { name: 'link' as const, measured_s: 3, predicted_s: 4 },
    { name: 'wait' as const, measured_s: 10, predicted_s: 20 },
  ];
  expect(wholePath(parts)).toEqual({ measured_s: 5, predicted_s: 5 });
});

test('how far a part is off is said in whole per cent of what was measured', () => {
  expect(offPercent({ measured_s: 0.4, predicted_s: 0.3 })).toBe('−25 %');
  expect(offPercent({ measured_s: 2, predicted_s: 2.508 })).toBe('+25 %');
  expect(offPercent({ measured_s: 0, predicted_s: 1 })).toBe('–');
});
