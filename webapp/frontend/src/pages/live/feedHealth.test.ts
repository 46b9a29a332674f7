import { describe, expect, it } from 'vitest';
import type { RunState } from '@/api/types';
import { feedHealth, isStalled } from './feedHealth';

const live = { state: 'live', reason: '', reconnects: 0, lastEventAt_ms: 1_000 } as const;
const words = (feed: Parameters<typeof feedHealth>[0], state: RunState, now_ms: number, ended = false) => {
  const { kind, text } = feedHealth(feed, state, ended, 1234, now_ms);
  return [kind, text];
};

describe('feedHealth', () => {
  it('calls a run live whose newest event is at most 5 s old', () => {
    expect(words(live, 'running', 6_000)).toEqual(['good', 'live']);
    expect(isStalled(live, 'running', 6_000)).toBe(false);
  });

  it('says that a running run sends nothing where the server answers and no event comes', () => {
    expect(words(live, 'running', 6_001)).toEqual(['quiet', 'the run sends nothing']);
    expect(isStalled(live, 'running', 6_001)).toBe(true);
  });

  it('expects no events of a run that waits, loads or is over', () => {
    for (const state of ['queued', 'building', 'loading', 'verifying'] as const)
      expect(words(live, state, 99_000)).toEqual(['good', 'live']);
    expect(words({ ...live, state: 'ended' }, 'finished', 99_000, true)).toEqual(['done', 'complete']);
  });

  it('says that the last events are missing, and that the connection is', () => {
    expect(words(live, 'running', 1_000, true)).toEqual(['done', 'reading the last events']);
    expect(words({ ...live, state: 'catching up' }, 'running', 99_000)).toEqual([
      'quiet',
      'catching up, 1,234 events',
    ]);
    const lost = { ...live, state: 'reconnecting', reason: 'Connection lost; reconnecting.' } as const;
    expect(words(lost, 'running', 99_000)).toEqual(['bad', 'Connection lost; reconnecting.']);
  });

  it('tells how often it connected again', () => {
    const about = (reconnects: number) => feedHealth({ ...live, reconnects }, 'running', false, 0, 0).about;
    expect(about(0)).toBe('Events arrive in order and complete, also after a reload.');
    expect(about(1)).toContain('Connected again once; no event is missing.');
    expect(about(2)).toContain('Connected again 2 times');
  });
});
