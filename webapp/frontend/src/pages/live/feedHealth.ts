/** The state of a run's feed in words: whether what the page shows is what the run does now. */
import { isOver, type RunState } from '@/api/types';
import type { Feed } from '@/run/feed/feed';

/** While a run is running, its clock comes four times per second. */
const STALLED_MS = 5_000;

export interface FeedHealth {
  kind: 'good' | 'quiet' | 'bad' | 'done';
  text: string;
  about: string;
}

type Connection = Pick<Feed, 'state' | 'reason' | 'reconnects' | 'lastEventAt_ms'>;

/** Whether a running run has sent nothing for so long that the page no longer shows its present. */
export function isStalled(feed: Connection, state: RunState, now_ms: number): boolean {
  return state === 'running' && feed.lastEventAt_ms !== null && now_ms - feed.lastEventAt_ms > STALLED_MS;
}

/** `state` is the run's as its events have it, `ended`: whether the server says that the run is over. */
export function feedHealth(
  feed: Connection,
  state: RunState,
  ended: boolean,
  events: number,
  now_ms: number,
): FeedHealth {
  const about = aboutConnection(feed);
  if (feed.state === 'refused' || feed.state === 'reconnecting')
    return { kind: 'bad', text: feed.reason, about };
  if (feed.state === 'connecting') return { kind: 'quiet', text: 'connecting', about };
  if (feed.state === 'catching up')
    return { kind: 'quiet', text: `catching up, ${events.toLocaleString('en')} events`, about };
  if (isOver(state)) return { kind: 'done', text: 'complete', about };
  if (ended) return { kind: 'done', text: 'reading the last events', about };
  if (!isStalled(feed, state, now_ms)) return { kind: 'good', text: 'live', about };
  return {
    kind: 'quiet',
    text: 'the run sends nothing',
    about:
      'The server answers, but the run has stopped sending events, of which several a second are usual: its devices load weights for a new plan, or the emulation or its worker hangs. The page shows the last known state.',
  };
}

function aboutConnection(feed: Connection): string {
  const again = feed.reconnects === 1 ? 'once' : `${feed.reconnects} times`;
  const lost =
    feed.reconnects === 0
      ? ''
      : ` Connected again ${again}${feed.state === 'live' ? '; no event is missing' : ''}.`;
  return `${feed.reason || 'Events arrive in order and complete, also after a reload.'}${lost}`;
}
