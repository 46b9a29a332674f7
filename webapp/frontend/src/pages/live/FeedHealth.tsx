import { Button, Text, Tooltip } from '@mantine/core';
import type { RunState } from '@/api/types';
import { useNow } from '@/components/useNow';
import type { Feed } from '@/run/feed/feed';
import { feedHealth } from './feedHealth';
import classes from './live.module.css';

interface Props {
  feed: Feed;
  /** The state of the run by its events, and whether the server says that it is over. */
  state: RunState;
  ended: boolean;
  /** Events that have arrived. */
  events: number;
}

/** The state of the connection: its lag, and the age of the newest event. */
export function FeedHealth({ feed, state, ended, events }: Props) {
  const now = useNow(500);
  const age_ms = feed.lastEventAt_ms === null ? null : now - feed.lastEventAt_ms;
  const { kind, text, about } = feedHealth(feed, state, ended, events, now);
  return (
    <Tooltip label={about} multiline w={300}>
      <div
        className={classes.health}
        data-kind={kind}
        data-testid="feed-health"
        data-state={feed.state}
        data-events={events}
      >
        <span className={classes.lamp} />
        <Text size="xs" component="span">
          {text}
        </Text>
        {feed.waits && (
          <Button size="compact-xs" variant="subtle" onClick={() => feed.retry()} data-testid="feed-retry">
            Try now
          </Button>
        )}
        {!ended && feed.state === 'live' && (
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

function ageText(age_ms: number): string {
  return age_ms < 1_000 ? 'now' : `${Math.round(age_ms / 1_000)} s ago`;
}
