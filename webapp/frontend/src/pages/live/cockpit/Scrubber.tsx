import { ActionIcon, Button, Group, Slider, Text, Tooltip } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import { seconds } from '@/format/units';
import classes from './cockpit.module.css';

/** Playing takes this long for the whole run. */
const PLAY_WALL_S = 20;
const TICK_MS = 100;
const STEPS = 1000;

interface Props {
  /** The instant that the page shows; null for the end, or the present of a run that goes on. */
  instant_s: number | null;
  end_s: number;
  live: boolean;
  onChange: (instant_s: number | null) => void;
}

/** Moves the whole page to an instant of the run's virtual time, or plays it. */
export function Scrubber({ instant_s, end_s, live, onChange }: Props) {
  const [playing, setPlaying] = useState(false);
  const at_s = instant_s ?? end_s;
  useEffect(() => {
    if (!playing) return;
    const timer = setTimeout(() => {
      const next_s = at_s + (end_s * TICK_MS) / 1000 / PLAY_WALL_S;
      if (next_s >= end_s) setPlaying(false);
      onChange(next_s >= end_s ? null : next_s);
    }, TICK_MS);
    return () => clearTimeout(timer);
  }, [playing, at_s, end_s, onChange]);
  return (
    <Group gap="sm" className={classes.scrubber} data-testid="scrubber">
      {!live && (
        <Tooltip label={playing ? 'Pause' : 'Play the run again'}>
          <ActionIcon
            variant="light"
            aria-label={playing ? 'Pause' : 'Play the run again'}
            data-testid="scrubber-play"
            onClick={() => {
              if (!playing && instant_s === null) onChange(0);
              setPlaying(!playing);
            }}
          >
            {playing ? <IconPlayerPause size={15} /> : <IconPlayerPlay size={15} />}
          </ActionIcon>
        </Tooltip>
      )}
      <Slider
        className={classes.seek}
        size="sm"
        min={0}
        max={STEPS}
        value={end_s > 0 ? (at_s / end_s) * STEPS : STEPS}
        label={null}
        thumbLabel="Instant of virtual time that the page shows"
        data-testid="scrubber-slider"
        onChange={(value) => {
          setPlaying(false);
          onChange(value >= STEPS ? null : (value / STEPS) * end_s);
        }}
      />
      <Text size="xs" className={classes.instant} data-testid="shown-instant">
        {instant_s === null ? (live ? 'now' : 'the end') : `shown: ${seconds(instant_s)}`} of {seconds(end_s)}
      </Text>
      <Button
        size="compact-xs"
        variant={instant_s === null ? 'default' : 'filled'}
        disabled={instant_s === null}
        data-testid="scrubber-reset"
        onClick={() => {
          setPlaying(false);
          onChange(null);
        }}
      >
        {live ? 'Back to now' : 'To the end'}
      </Button>
    </Group>
  );
}
