import { describe, expect, it } from 'vitest';
import { ApiError, SilentServer } from '@/api/client';
import type { Health } from '@/api/queries';
import { complaint, heldText, waitingText } from './health';

const GOOD: Health = {
  redis: null,
  worker_emulate: true,
  worker_plan: true,
  starting: false,
  queue_length: 0,
  waiting_points: 0,
  busy_run: null,
  held_by: null,
  storage: null,
};

describe('complaint', () => {
  it('is none while all parts answer, and before it is known', () => {
    expect(complaint(GOOD, null)).toBeNull();
    expect(complaint(undefined, null)).toBeNull();
  });

  it('names the part that is missing', () => {
    expect(complaint({ ...GOOD, redis: 'does not answer', worker_emulate: false }, null)).toContain(
      'Redis does not answer',
    );
    expect(complaint({ ...GOOD, storage: 'disk full' }, null)).toContain('(disk full)');
    expect(complaint({ ...GOOD, redis: 'refuses: OOM' }, null)).toContain('Redis refuses: OOM. Runs go on');
    expect(complaint({ ...GOOD, worker_emulate: false }, null)).toContain('No emulation worker answers');
    expect(complaint({ ...GOOD, worker_plan: false }, null)).toContain('No planning worker answers');
  });

  it('is none while workers may be on their way, and stays while Redis is missing', () => {
    const starting = { ...GOOD, worker_emulate: false, worker_plan: false, starting: true };
    expect(complaint(starting, null)).toBeNull();
    expect(complaint({ ...starting, redis: 'does not answer' }, null)).toContain('Redis does not answer');
  });

  it('calls only a server that cannot be reached one', () => {
    expect(complaint(GOOD, new ApiError(0, 'gone'))).toContain('cannot be reached');
    expect(complaint(GOOD, new SilentServer())).toContain('takes requests but does not answer');
    expect(complaint(GOOD, new ApiError(500, 'The server answered 500 Internal Server Error.'))).toBe(
      'The server could not say whether all its parts answer: The server answered 500 Internal Server Error. This page asks again by itself.',
    );
    expect(complaint(GOOD, new SyntaxError('Unexpected token'))).toContain('Unexpected token');
    expect(complaint(GOOD, new ApiError(401, 'Log in first.'))).toBeNull();
  });
});

describe('what waits', () => {
  it('is counted by kind, for a page of runs shows no points', () => {
    expect(waitingText({ ...GOOD, queue_length: 2, waiting_points: 1 })).toBe('2 runs and 1 point waiting');
    expect(waitingText({ ...GOOD, waiting_points: 11 })).toBe('11 points waiting');
    expect(waitingText(GOOD)).toBe('');
  });
});

it('says whose program the machine emulates for, and since when', () => {
  const since = new Date(2026, 10, 28, 10, 32).getTime() / 1000;
  const held_by = { user: 'ann', pid: 7, purpose: 'run', since, counts: true };
  expect(heldText(GOOD)).toBe('');
  expect(heldText({ ...GOOD, held_by })).toMatch(/a run of ann \(process 7\), since 10:32/);
});
