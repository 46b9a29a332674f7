import { describe, expect, it } from 'vitest';
import { waitText } from './waiting';

const queued = { status: 'queued', queue_position: 1, starts_in_s: null, detail: '' } as const;
const after = { ...queued, detail: 'It starts when run 7 ends.' };

describe('what a queued run says', () => {
  it('names the run whose end it waits for, and the time where one is known', () => {
    expect(waitText(after)).toBe('Next in the queue. It starts when run 7 ends.');
    expect(waitText({ ...after, queue_position: 3, starts_in_s: 42 })).toBe(
      'Number 3 in the queue, likely in 42 s. It starts when run 7 ends.',
    );
    expect(waitText({ ...after, starts_in_s: 0 })).not.toContain('0 s');
    expect(waitText(queued)).toBe('Next in the queue.');
  });

  it('says nothing of a run that a worker has', () => {
    expect(waitText({ ...after, status: 'planning' })).toBe('');
  });
});
