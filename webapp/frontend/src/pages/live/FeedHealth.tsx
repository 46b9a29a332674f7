import { Button, Text, Tooltip } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { Feed } from '@/run/feed/feed';
import classes from './live.module.css';

const QUIET_MS = 5_000;

interface Props {
  feed: Feed;
  /** Whether the run is over, and whether all of its events are here. */
  over: boolean;
  complete: boolean;
  /** Events that have arrived. */
  events: number;
}

/** The state of the connection: its lag, and the age of the newest event. */
export function FeedHealth({ feed, over, complete, events }: Props) {
  const now = useNow(500);
  const age_ms = feed.lastEventAt_ms === null ? null : now - feed.lastEventAt_ms;
  const broken = feed.state === 'reconnecting' || feed.state === 'refused';
  const quiet = !over && !broken && age_ms !== null && age_ms > QUIET_MS;
  const kind = broken ? 'bad' : over ? 'done' : quiet ? 'quiet' : feed.state === 'live' ? 'good' : 'quiet';
  return (
    <Tooltip label={tip(feed)} multiline w={260}>
      <div
        className={classes.health}
        data-kind={kind}
        data-testid="feed-health"
        data-state={feed.state}
        data-events={events}
      >
        <span className={classes.lamp} />
        <Text size="xs" component="span">
          {words(feed, over, complete, events)}
        </Text>
        {feed.waits && (
          <Button size="compact-xs" variant="subtle" onClick={() => feed.retry()} data-testid="feed-retry">
            Try now
          </Button>
        )}
        {!over && feed.state === 'live' && (
          <Text size="xs" c="dimmed" component="span" className={classes.age}>
            lag <span data-testid="feed-lag">{Math.round(feed.lag_ms)} ms</span>
            {age_ms !== null && (
              <>
                {' '}
                · last event <span data-testid="last-event-age">{ageText(age_ms)}</span>
              </>
            )}
          </Text>
        )}
      </div>
    </Tooltip>
  );
}

function words(feed: Feed, over: boolean, complete: boolean, events: number): string {
  if (feed.state === 'refused') return feed.reason;
  if (feed.state === 'reconnecting') return feed.reason;
  if (feed.state === 'connecting') return 'connecting';
  if (feed.state === 'catching up') return `catching up, ${events.toLocaleString('en')} events`;
  if (!over) return 'live';
  return complete ? 'complete' : 'reading the last events';
}

function tip(feed: Feed): string {
  const again = feed.reconnects === 1 ? 'once' : `${feed.reconnects} times`;
  const lost =
    feed.reconnects === 0
      ? ''
      : ` Connected again ${again}${feed.state === 'live' ? '; no event is missing' : ''}.`;
  return `${feed.reason || 'Events arrive in order and complete, also after a reload.'}${lost}`;
}

function ageText(age_ms: number): string {
  return age_ms < 1_000 ? 'now' : `${Math.round(age_ms / 1_000)} s ago`;
}

function useNow(every_ms: number): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every_ms);
    return () => clearInterval(timer);
  }, [every_ms]);
  return now;
}
