import { expect, it } from 'vitest';

import { ApiError } from '@/api/client';
import { refusalIn, isRefusedForGood } from './refusals';

it('tells a run that cannot be from a server that could not answer', () => {
  const noPlan = [{ path: 'strategy', message: 'No device has room.' }];
  expect(isRefusedForGood(new ApiError(422, 'Not valid.'))).toBe(true);
  expect(isRefusedForGood(new ApiError(409, 'No device has room.', noPlan))).toBe(true);
  expect(isRefusedForGood(new ApiError(409, 'It takes more than 30 s.'))).toBe(false);
  expect(isRefusedForGood(new ApiError(503, 'No worker.'))).toBe(false);
  expect(isRefusedForGood(new Error('offline'))).toBe(false);
  expect(isRefusedForGood(null)).toBe(false);
});

const about = (path: string) => new ApiError(422, `${path} is wrong.`, [{ path, message: 'is wrong' }]);

it.each([
  ['cluster.devices[1]', 'Cluster', 'is wrong'],
  ['weights', 'Model', 'is wrong'],
  ['activation_bits', 'Model', 'is wrong'],
  ['strategy', 'Strategy', 'is wrong'],
  ['params.plan.devices', 'Plan', 'is wrong'],
  ['params.ratio', 'Parameters', null], // beside its input
  ['params.other', 'Parameters', 'is wrong'], // which has none
  ['workload.new_tokens', 'Workload', null],
  ['workload.assumed_tokens', 'Workload', null],
  ['workload.top_p', 'Workload', null],
  ['workload.token_limit_s', 'Execution', null],
  ['workload', 'Workload', 'is wrong'],
  ['compute_model', 'Execution', 'is wrong'],
  ['scenario.changes[0].at_s', 'Scenario', 'is wrong'],
  ['tags[3]', 'Labels', null],
])('a refusal about %s stands once, in %s', (path, section, message) => {
  expect(refusalIn(about(path), false, ['ratio'])).toEqual({ section, message });
});

it('lets the editor of a plan made by hand say why the strategy cannot follow it', () => {
  expect(refusalIn(about('strategy'), true, [])).toEqual({ section: 'Plan', message: null });
  expect(refusalIn(about('params.plan'), true, [])).toEqual({ section: 'Plan', message: null });
  expect(refusalIn(about('model'), true, [])?.section).toBe('Model');
});

it('finds no section for what is about no part of the form', () => {
  expect(refusalIn(about('somewhere'), false, [])).toBeNull();
  expect(refusalIn(new ApiError(503, 'No worker.'), false, [])).toBeNull();
  expect(refusalIn(new Error('offline'), false, [])).toBeNull();
});
