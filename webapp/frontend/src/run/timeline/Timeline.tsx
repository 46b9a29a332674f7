import { useElementSize } from '@mantine/hooks';
import { useEffect, useMemo, useRef, useState } from 'react';
import { colorsByName } from '@/theme/deviceColors';
import { useCanvasColors } from '../charts/colors';
import type { Segment } from '@/run/data/criticalPath';
import type { RunData } from '@/run/data/runData';
import { onPaint } from '@/run/charts/paint';
import { drawTimeline } from './draw';
import { useDrag, useSeen, useWheel } from './pointer';
import { timeAt } from './scale';
import { hitTest, roomy, totalHeight, type Density, type Hit } from './layout';
import { SpanTip } from './SpanTip';
import classes from './timeline.module.css';
import type { Viewport } from './viewport';

/** Interval of redrawing while the run goes on; dragging and zooming redraw at once. */
const MOVING_MS = 120;
/** Off the screen, often enough for a print or a screenshot of the page. */
const UNSEEN_MS = 2_000;

interface Props {
  data: RunData;
  viewport: Viewport;
  /** The present virtual time, extrapolated between events. */
  now: () => number;
  density?: Density;
  label: string;
  /** Drawn over the spans: the activities that the end of the run waited for. */
  path?: readonly Segment[];
  /** A click on the timeline, not a drag. */
  onPick?: (time_s: number) => void;
}

interface Tip {
  hit: Hit;
  x: number;
  y: number;
}

/** The spans of every device over virtual time, with one row of lanes per device, on a canvas. */
export function Timeline({ data, viewport, now, density = roomy, label, path, onPick }: Props) {
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const colors = useCanvasColors();
  const [tip, setTip] = useState<Tip | null>(null);
  const height = totalHeight(data.devices.length, density);
  const deviceColors = useMemo(() => colorsByName(data.devices), [data]);

  const seen = useSeen(canvas);

  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext('2d');
    if (!element || !ctx || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(height * ratio);
    ctx.scale(ratio, ratio);
    let events = -1;
    let version = -1;
    let at_ms = -Infinity;
    return onPaint((now_ms) => {
      const touched = seen.current && viewport.version !== version;
      if (!touched && now_ms - at_ms < (seen.current ? MOVING_MS : UNSEEN_MS)) return;
      at_ms = now_ms;
      viewport.follow(now());
      if (viewport.version === version && data.events === events) return;
      drawTimeline({ ctx, width, height, data, deviceColors, colors, density, viewport, path });
      version = viewport.version;
      events = data.events;
    });
  }, [data, viewport, now, width, height, colors, density, deviceColors, seen, path]);

  useWheel(canvas, viewport, width, density.labelWidth);
  const drag = useDrag(viewport, width, density.labelWidth);

  const hover = (event: React.PointerEvent<HTMLCanvasElement>) => {
    const rect = event.currentTarget.getBoundingClientRect();
    const x = event.clientX - rect.left;
    const y = event.clientY - rect.top;
    const time_s = timeAt(x, viewport, width, density.labelWidth);
    viewport.point(x > density.labelWidth ? time_s : null);
    const slack_s = (2 * (viewport.end_s - viewport.start_s)) / Math.max(width - density.labelWidth, 1);
    const hit = event.buttons > 0 ? null : hitTest(data, density, y, time_s, slack_s);
    setTip(hit && x > density.labelWidth ? { hit, x, y } : null);
  };

  return (
    <div ref={box} className={classes.box} style={{ height }}>
      <canvas
        ref={canvas}
        className={classes.canvas}
        style={{ height }}
        role="img"
        aria-label={label}
        data-testid="timeline"
        onPointerDown={drag.down}
        onPointerUp={(event) => {
          const x = event.clientX - event.currentTarget.getBoundingClientRect().left;
          if (!drag.moved() && x > density.labelWidth)
            onPick?.(timeAt(x, viewport, width, density.labelWidth));
          drag.up();
        }}
        onPointerCancel={drag.up}
        onPointerMove={(event) => {
          drag.move(event);
          hover(event);
        }}
        onPointerLeave={() => {
          viewport.point(null);
          setTip(null);
        }}
      />
      {tip && (
        <SpanTip hit={tip.hit} x={tip.x} y={tip.y} width={width} color={deviceColors[tip.hit.device.name]} />
      )}
    </div>
  );
}
