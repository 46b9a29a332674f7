import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef, type ReactNode } from 'react';
import { onPaint, type Frame } from '@/run/charts/paint';
import { useCanvasColors } from '../charts/colors';
import { drawMarked, type Plane } from './axis';
import { steer, useDrag, useSeen, useWheel } from './pointer';
import { timeAt } from './scale';
import classes from './timeline.module.css';
import type { Viewport } from './viewport';

/** Off the screen, often enough for a print or a screenshot of the page. */
const UNSEEN_MS = 2_000;

/** Where the pointer is on a canvas; `time_s` is null on the names at its left. */
export interface Pointed {
  x: number;
  y: number;
  time_s: number | null;
  /** Virtual seconds that a pixel stands for. */
  perPixel_s: number;
  width: number;
  pressed: boolean;
}

interface Props {
  viewport: Viewport;
  labelWidth: number;
  height: number;
  /** Height of the axis at the top, along which a drag marks a stretch; it gets the keys. */
  axisHeight?: number;
  /** Paints everything; another function when it would paint something else from the same data. */
  draw: (plane: Plane, now_s: number) => void;
  /** Grows when there is more data. */
  version: () => number;
  /** The present virtual time at a wall clock, which the viewport follows. */
  now: (wall_ms: number) => number;
  /** Without one it is decoration. */
  label?: string;
  testId?: string;
  /** A click, not a drag. */
  onPick?: (time_s: number) => void;
  onPoint?: (at: Pointed | null) => void;
  children?: ReactNode;
}

const AXIS_KEYS = 'arrow keys move it, plus and minus zoom, 0 shows all';
const AXIS_HINT = 'Drag along the axis, or with Shift anywhere, to zoom to that stretch; Esc cancels';

/** A canvas over the shared time axis: painted when there is something new; the wheel zooms it, dragging pans, or
 * zooms where it marks a stretch. */
export function AxisCanvas(props: Props) {
  const { viewport, labelWidth, height, draw, version, now, label, testId, onPick, onPoint } = props;
  const { axisHeight = 0 } = props;
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const colors = useCanvasColors();
  const seen = useSeen(canvas);
  const latest = useRef({ version, now });
  useEffect(() => {
    latest.current = { version, now };
  });
  useEffect(() => {
    const ctx = canvas.current?.getContext('2d');
    if (!ctx || width === 0) return;
    const plane = { ctx, width, height, colors, density: { labelWidth }, viewport };
    let drawn = { view: -1, data: -1 };
    let touches = -1;
    let at_ms = -Infinity;
    const hasNews = () => seen.current && latest.current.version() !== drawn.data;
    const paint = ({ wall_ms, now_ms, due }: Frame) => {
      const touched = seen.current && viewport.touches !== touches;
      const mayPaint = touched || (seen.current ? due : now_ms - at_ms >= UNSEEN_MS);
      if (!mayPaint) return false;
      at_ms = now_ms;
      const now_s = latest.current.now(wall_ms);
      viewport.follow(now_s);
      const state = { view: viewport.version, data: latest.current.version() };
      if (state.view === drawn.view && state.data === drawn.data) return false;
      drawn = state;
      touches = viewport.touches;
      fit(ctx, width, height);
      draw(plane, now_s);
      drawMarked(plane, axisHeight);
      return true;
    };
    return onPaint({ hasNews, paint });
  }, [viewport, width, height, axisHeight, colors, labelWidth, draw, seen]);
  useWheel(canvas, viewport, width, labelWidth);
  const drag = useDrag(viewport, { width, labelWidth, axisHeight });
  const pointed = (event: React.PointerEvent<HTMLCanvasElement>): Pointed => {
    const rect = event.currentTarget.getBoundingClientRect();
    const x = event.clientX - rect.left;
    return {
      x,
      y: event.clientY - rect.top,
      time_s: x > labelWidth ? timeAt(x, viewport, width, labelWidth) : null,
      perPixel_s: (viewport.end_s - viewport.start_s) / Math.max(width - labelWidth, 1),
      width,
      pressed: event.buttons > 0,
    };
  };
  return (
    <div
      ref={box}
      className={classes.box}
      style={{ height }}
      {...(axisHeight > 0 && {
        tabIndex: 0,
        role: 'group',
        'aria-label': `Time axis: ${AXIS_KEYS}`,
        onKeyDown: (event: React.KeyboardEvent) => {
          const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
          if (plain && steer(viewport, event.key, now(Date.now()))) event.preventDefault();
        },
      })}
    >
      <canvas
        ref={canvas}
        className={classes.canvas}
        style={{ height }}
        role={label && 'img'}
        aria-label={label}
        aria-hidden={label ? undefined : true}
        data-testid={testId}
        onPointerDown={drag.down}
        onPointerUp={(event) => {
          const { time_s } = pointed(event);
          if (drag.clicked() && time_s !== null) onPick?.(time_s);
          drag.up();
        }}
        onPointerCancel={drag.cancel}
        onPointerMove={(event) => {
          drag.move(event);
          const marks = viewport.marked !== null || (event.buttons === 0 && drag.marks(event));
          event.currentTarget.dataset['marks'] = String(marks);
          event.currentTarget.title = axisHeight > 0 && marks && event.buttons === 0 ? AXIS_HINT : '';
          const at = pointed(event);
          viewport.point(at.time_s);
          onPoint?.(at);
        }}
        onPointerLeave={() => {
          viewport.point(null);
          onPoint?.(null);
        }}
      />
      {props.children}
    </div>
  );
}

/** Gives the canvas a pixel for every pixel of the screen; one that has them keeps its picture. */
function fit(ctx: CanvasRenderingContext2D, width: number, height: number): void {
  const ratio = window.devicePixelRatio || 1;
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (ctx.canvas.width !== across) ctx.canvas.width = across;
  if (ctx.canvas.height !== down) ctx.canvas.height = down;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
}
