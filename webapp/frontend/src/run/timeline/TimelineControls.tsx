import { Button, Group, SegmentedControl } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useSyncExternalStore } from 'react';
import type { Viewport, Window } from './viewport';

interface Props {
  viewport: Viewport;
  now: (wall_ms: number) => number;
  /** Whether the run still goes on; only then the timeline can follow it. */
  live: boolean;
}

/** Buttons for the stretch of time that a timeline shows, and for following the run. */
export function TimelineControls({ viewport, now, live }: Props) {
  useSyncExternalStore(viewport.subscribe, () => viewport.touches);
  const { following } = viewport;
  return (
    <Group gap="xs" wrap="nowrap">
      <SegmentedControl
        size="xs"
        data-testid="timeline-window"
        aria-label="Stretch of time shown"
        value={viewport.window === null ? '' : String(viewport.window)}
        onChange={(value) =>
          viewport.show(value === 'all' ? 'all' : (Number(value) as Window), now(Date.now()))
        }
        data={[
          { value: '1', label: '1 s' },
          { value: '10', label: '10 s' },
          { value: 'all', label: 'All' },
        ]}
      />
      {live && (
        <Button
          size="xs"
          w={92}
          variant={following ? 'light' : 'filled'}
          color={following ? 'green' : undefined}
          data-testid="timeline-follow"
          aria-pressed={following}
          leftSection={following ? <IconPlayerPause size={14} /> : <IconPlayerPlay size={14} />}
          onClick={() => (following ? viewport.pause() : viewport.resume(now(Date.now())))}
        >
          {following ? 'Live' : 'Paused'}
        </Button>
      )}
    </Group>
  );
}
