import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import { onPaint } from '@/run/charts/paint';
import { useCanvasColors } from '../charts/colors';
import { useDrag, useSeen, useWheel } from './pointer';
import { timeAt } from './scale';
import classes from './timeline.module.css';
import { drawTrack, type TrackLine } from './tracks';
import type { Viewport } from './viewport';

/** Interval of redrawing while data comes in; dragging, zooming and the cursor redraw at once. */
const MOVING_MS = 120;

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
  now: () => number;
  labelWidth: number;
  height: number;
  top?: number | null;
  format: (value: number) => string;
  onPick?: (time_s: number) => void;
  testId?: string;
}

/** Lines of one quantity over the shared time axis, on a canvas. */
export function TrackChart(props: Props) {
  const { title, viewport, labelWidth, height, onPick, testId } = props;
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const colors = useCanvasColors();
  const seen = useSeen(canvas);
  const latest = useRef(props);
  useEffect(() => {
    latest.current = props;
  });
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext('2d');
    if (!element || !ctx || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    ctx.scale(ratio, ratio);
    let drawn = '';
    let at_ms = -Infinity;
    return onPaint((now_ms) => {
      const { content, version, changes, now, top = null, format } = latest.current;
      const touched = `${viewport.version}`;
      if (!seen.current || (drawn.startsWith(`${touched} `) && now_ms - at_ms < MOVING_MS)) return;
      at_ms = now_ms;
      const state = `${touched} ${version()}`;
      if (state === drawn) return;
      drawn = state;
      const time_s = viewport.cursor_s ?? viewport.instant_s ?? now();
      const density = { labelWidth };
      drawTrack({ ctx, width, height, colors, density, viewport, title, top, format, changes: changes(), ...content(time_s) }); // prettier-ignore
    });
  }, [viewport, width, height, colors, labelWidth, title, seen]);
  useWheel(canvas, viewport, width, labelWidth);
  const drag = useDrag(viewport, width, labelWidth);
  const at = (event: React.PointerEvent<HTMLCanvasElement>) => {
    const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
    return x > labelWidth ? timeAt(x, viewport, width, labelWidth) : null;
  };
  return (
    <div ref={box} className={classes.box} style={{ height }}>
      <canvas
        ref={canvas}
        className={classes.canvas}
        style={{ height }}
        role="img"
        aria-label={`${title} over virtual time`}
        data-testid={testId}
        onPointerDown={drag.down}
        onPointerUp={(event) => {
          const time_s = at(event);
          if (!drag.moved() && time_s !== null) onPick?.(time_s);
          drag.up();
        }}
        onPointerCancel={drag.up}
        onPointerMove={(event) => {
          drag.move(event);
          viewport.point(at(event));
        }}
        onPointerLeave={() => viewport.point(null)}
      />
    </div>
  );
}
