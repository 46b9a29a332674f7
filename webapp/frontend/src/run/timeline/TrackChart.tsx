import { useCallback, useEffect, useRef } from 'react';
import { AxisCanvas } from './AxisCanvas';
import type { Plane } from './axis';
import { drawTrack, type TrackLine } from './tracks';
import type { Viewport } from './viewport';

export interface TrackContent {
  lines: TrackLine[];
  /** What the lines are at an instant, in at most two lines of text. */
  values: string[];
}

interface Props {
  title: string;
  /** Reads the lines, and their values at `time_s`, from the run's data. */
  content: (time_s: number) => TrackContent;
  /** Grows when there is more data. */
  version: () => number;
  changes: () => readonly { time_s: number }[];
  viewport: Viewport;
  now: (wall_ms: number) => number;
  labelWidth: number;
  height: number;
  top?: number | null;
  format: (value: number) => string;
  onPick?: (time_s: number) => void;
  testId?: string;
}

/** Lines of one quantity over the shared time axis. */
export function TrackChart(props: Props) {
  const { title, viewport, version, now, labelWidth, height, onPick, testId } = props;
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });
  const draw = useCallback(
    (plane: Plane, now_s: number) => {
      const { content, changes, top = null, format } = latest.current;
      const shown = content(plane.viewport.cursor_s ?? plane.viewport.instant_s ?? now_s);
      drawTrack({ ...plane, title, top, format, changes: changes(), ...shown });
    },
    [title],
  );
  return (
    <AxisCanvas
      viewport={viewport}
      labelWidth={labelWidth}
      height={height}
      draw={draw}
      version={version}
      now={now}
      label={`${title} over virtual time`}
      testId={testId}
      onPick={onPick}
    />
  );
}
