import { Chip, Group } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import { useMemo } from 'react';
import { percent, seconds } from '@/format/units';
import { useCanvasColors } from '@/run/charts/colors';
import { effectsOf, type Effect } from '@/run/data/effects';
import type { PredictedToken } from '@/run/data/progress';
import type { Injection, RunData } from '@/run/data/runData';
import type { Snapshot } from '@/run/data/snapshot';
import { dense } from '@/run/timeline/layout';
import { Ruler, type Flag } from '@/run/timeline/Ruler';
import { SpanLegend } from '@/run/timeline/SpanLegend';
import { Timeline } from '@/run/timeline/Timeline';
import { TimelineControls } from '@/run/timeline/TimelineControls';
import { TrackChart } from '@/run/timeline/TrackChart';
import type { Viewport } from '@/run/timeline/viewport';
import type { Selection } from '@/run/topology/Topology';
import { deviceColor } from '@/theme/deviceColors';
import { CockpitPanel } from './CockpitPanel';
import { latencyTrack, linkTrack, memoryTrack } from './lines';
import { Scrubber } from './Scrubber';
import classes from './cockpit.module.css';

const TRACKS = [
  { value: 'latency', label: 'Latency per token' },
  { value: 'links', label: 'Link use' },
  { value: 'memory', label: 'Memory' },
  { value: 'devices', label: 'Devices' },
];
const SHOWN = TRACKS.map(({ value }) => value);

interface Props {
  data: RunData;
  /** The newest snapshot, not that of the instant that is shown. */
  picture: Snapshot;
  predicted: readonly PredictedToken[];
  viewport: Viewport;
  now: (wall_ms: number) => number;
  selection: Selection;
  generates: boolean;
  onPick: (time_s: number) => void;
}

/** Everything over virtual time on one axis: changes, latency, what every device does, links and memory. */
function TimeTracks(props: Props) {
  const { data, picture, predicted, viewport, now, selection, generates, onPick } = props;
  const colors = useCanvasColors();
  const [shown] = useShownTracks();
  const flags = useMemo(
    () => flagsOf(picture.injections, effectsOf(picture.injections, picture.tokens), picture.time_s),
    [picture.injections, picture.tokens, picture.time_s],
  );
  const common = {
    viewport,
    now,
    labelWidth: dense.labelWidth,
    version: () => data.events,
    changes: () => data.injections,
    onPick,
  };
  const chosen = (kind: 'link' | 'device') => (selection?.kind === kind ? selection.name : null);
  return (
    <div className={classes.tracks} tabIndex={0} role="region" aria-label="The run over time">
      <Ruler viewport={viewport} now={now} flags={flags} labelWidth={dense.labelWidth} onPick={onPick} />
      {generates && shown.includes('latency') && (
        <TrackChart
          {...common}
          title="Latency per token"
          height={48}
          format={seconds}
          testId="latency-chart"
          content={(time_s) => latencyTrack(data, predicted, colors, time_s)}
        />
      )}
      {shown.includes('devices') && (
        <div className={classes.lanes}>
          <Timeline
            data={data}
            viewport={viewport}
            now={now}
            density={dense}
            onPick={onPick}
            label="What every device did over virtual time"
          />
          <div className={classes.legend}>
            <SpanLegend />
          </div>
        </div>
      )}
      {shown.includes('links') && data.links.length > 0 && (
        <TrackChart
          {...common}
          key={`links ${chosen('link')}`}
          title="Link use"
          height={50}
          format={percent}
          testId="link-use-chart"
          content={(time_s) => linkTrack(data, chosen('link'), colors, time_s)}
        />
      )}
      {shown.includes('memory') && (
        <TrackChart
          {...common}
          key={`memory ${chosen('device')}`}
          title="Memory"
          height={46}
          top={1}
          format={percent}
          testId="memory-chart"
          content={(time_s) => memoryTrack(data, deviceColor, chosen('device'), time_s)}
        />
      )}
    </div>
  );
}

interface PanelProps extends Props {
  live: boolean;
  /** The instant that is shown; null: the newest. */
  instant_s: number | null;
  onPick: (instant_s: number | null) => void;
}

/** The run over time: the choice of tracks and the zoom, the tracks, and below them the scrubber. */
export function TimePanel({ live, instant_s, ...tracks }: PanelProps) {
  const { viewport, now, picture, onPick } = tracks;
  return (
    <CockpitPanel
      title="Over time"
      testId="timeline-panel"
      about="virtual time; click: show that instant, scroll or drag along the axis: zoom, drag: pan"
      extra={
        <>
          <TrackChoice />
          <TimelineControls viewport={viewport} now={now} live={live} />
        </>
      }
    >
      <div className={classes.time}>
        <TimeTracks {...tracks} />
        <Scrubber instant_s={instant_s} end_s={picture.time_s} live={live} onChange={onPick} />
      </div>
    </CockpitPanel>
  );
}

/** Which tracks are shown; remembered. */
function useShownTracks() {
  return useLocalStorage<string[]>({
    key: 'loom-live-tracks',
    defaultValue: SHOWN,
    getInitialValueInEffect: false,
  });
}

function TrackChoice() {
  const [shown, setShown] = useShownTracks();
  return (
    <Chip.Group multiple value={shown} onChange={setShown}>
      <Group gap={4} wrap="nowrap">
        {TRACKS.map(({ value, label }) => (
          <Chip key={value} value={value} size="xs" variant="light" data-testid={`track-${value}`}>
            {label}
          </Chip>
        ))}
      </Group>
    </Chip.Group>
  );
}

/** Changes closer together than this part of the run share a flag. */
const TOGETHER = 0.01;

function flagsOf(changes: readonly Injection[], effects: readonly (Effect | null)[], end_s: number): Flag[] {
  const flags: Flag[] = [];
  changes.forEach(({ time_s, label, by }, at) => {
    const details = [`${label}: at ${seconds(time_s)}${by ? `, by ${by}` : ''}`];
    const effect = sentence(effects[at] ?? null);
    const last = flags.at(-1);
    if (last && time_s - last.time_s < TOGETHER * end_s) {
      last.label += ` · ${label}`;
      last.details = [...last.details.filter((one) => !effect.includes(one)), ...details, ...effect];
    } else flags.push({ time_s, label, details: [...details, ...effect] });
  });
  return flags;
}

function sentence(effect: Effect | null): string[] {
  if (!effect) return [];
  const { before_s, after_s, worst_s } = effect;
  const longest = worst_s > 1.5 * after_s ? `, the longest ${seconds(worst_s)}` : '';
  return [`A token took ${seconds(before_s)} before and ${seconds(after_s)} after${longest}.`];
}
