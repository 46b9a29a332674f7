import { expect, it } from 'vitest';

import { ApiError } from '@/api/client';
import { refusedForGood } from './refusals';

it('tells a run that cannot be from a server that could not answer', () => {
  const noPlan = [{ path: 'strategy', message: 'No device has room.' }];
  expect(refusedForGood(new ApiError(422, 'Not valid.'))).toBe('Not valid.');
  expect(refusedForGood(new ApiError(409, 'No device has room.', noPlan))).toBe('No device has room.');
  expect(refusedForGood(new ApiError(409, 'It takes more than 30 s.'))).toBeNull();
  expect(refusedForGood(new ApiError(503, 'No worker.'))).toBeNull();
  expect(refusedForGood(new Error('offline'))).toBeNull();
  expect(refusedForGood(null)).toBeNull();
});
