/** What pointer and keys do on a canvas over a viewport: they zoom, pan and mark; and whether it is seen. */
import { useEffect, useMemo, useRef } from 'react';
import { timeAt } from './scale';
import type { Viewport } from './viewport';

/** Whether any of the element is on the screen. */
export function useSeen(element: React.RefObject<Element | null>): React.RefObject<boolean> {
  const seen = useRef(true);
  useEffect(() => {
    if (!element.current) return;
    const observer = new IntersectionObserver((entries) => {
      seen.current = entries.at(-1)?.isIntersecting ?? true;
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element]);
  return seen;
}

/** A wheel listener that prevents scrolling, as React's passive ones cannot. */
export function useWheel(
  canvas: React.RefObject<HTMLCanvasElement | null>,
  viewport: Viewport,
  width: number,
  labelWidth: number,
) {
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      const rect = element.getBoundingClientRect();
      const span = viewport.end_s - viewport.start_s;
      const sideways = event.shiftKey ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) > Math.abs(event.deltaY) || event.shiftKey)
        viewport.pan((sideways / width) * span);
      else
        viewport.zoom(1.0015 ** event.deltaY, timeAt(event.clientX - rect.left, viewport, width, labelWidth));
    };
    element.addEventListener('wheel', wheel, { passive: false });
    return () => element.removeEventListener('wheel', wheel);
  }, [canvas, viewport, width, labelWidth]);
}

/** So many pixels make a drag along the axis, and fewer a click. */
const LEAST_MARK = 4;

type Gesture = { kind: 'pan'; last: number } | { kind: 'mark'; from: number; to: number; from_s: number };

const isMark = ({ from, to }: { from: number; to: number }) => Math.abs(to - from) >= LEAST_MARK;

/** Where the axis is on a canvas: right of the names, which take `labelWidth`, and above `axisHeight`. */
interface Axis {
  width: number;
  labelWidth: number;
  axisHeight: number;
}

type CanvasPointer = React.PointerEvent<HTMLCanvasElement>;

/** Dragging pans; along the axis, or with Shift anywhere, it marks a stretch, which is shown when it is let go. */
export function useDrag(viewport: Viewport, { width, labelWidth, axisHeight }: Axis) {
  const gesture = useRef<Gesture | null>(null);
  const moved = useRef(false);
  const listener = useRef<((event: KeyboardEvent) => void) | null>(null);
  return useMemo(() => {
    const xOf = (event: CanvasPointer) => event.clientX - event.currentTarget.getBoundingClientRect().left;
    const timeOf = (x: number) =>
      timeAt(Math.min(Math.max(x, labelWidth), width), viewport, width, labelWidth);
    const cancelByKey = (event: KeyboardEvent) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation(); // a panel that fills the window stays so
      moved.current = true;
      cancel();
    };
    const cancel = () => {
      gesture.current = null;
      // Not `cancelByKey`: since the pointer went down the canvas may have got another size, and this hook other functions.
      if (listener.current) window.removeEventListener('keydown', listener.current, true);
      listener.current = null;
      viewport.mark(null);
    };
    /** Whether a drag that begins here marks. */
    const marks = (event: CanvasPointer) => {
      const y = event.clientY - event.currentTarget.getBoundingClientRect().top;
      return xOf(event) >= labelWidth && (event.shiftKey || y < axisHeight);
    };
    return {
      marks,
      down: (event: CanvasPointer) => {
        if (event.button !== 0) return;
        moved.current = false;
        event.currentTarget.setPointerCapture(event.pointerId);
        if (!marks(event)) {
          gesture.current = { kind: 'pan', last: event.clientX };
          return;
        }
        const x = xOf(event);
        gesture.current = { kind: 'mark', from: x, to: x, from_s: timeOf(x) };
        listener.current = cancelByKey;
        window.addEventListener('keydown', cancelByKey, true);
      },
      move: (event: CanvasPointer) => {
        const now = gesture.current;
        if (now?.kind === 'mark') {
          now.to = xOf(event);
          if (isMark(now)) moved.current = true;
          if (moved.current) viewport.mark({ from_s: now.from_s, to_s: timeOf(xOf(event)) });
        } else if (now && event.clientX !== now.last) {
          const span = viewport.end_s - viewport.start_s;
          viewport.pan((-(event.clientX - now.last) / Math.max(width - labelWidth, 1)) * span);
          now.last = event.clientX;
          moved.current = true;
        }
      },
      /** Whether the pointer was only pressed and let go. */
      clicked: () => gesture.current !== null && !moved.current,
      up: () => {
        if (gesture.current?.kind === 'mark' && isMark(gesture.current)) viewport.showMarked();
        cancel();
      },
      cancel,
    };
  }, [viewport, width, labelWidth, axisHeight]);
}

/** What a key does on a focused axis: arrows pan, plus and minus zoom around the middle, 0 shows all. */
export function steer(viewport: Viewport, key: string, now_s: number): boolean {
  const span_s = viewport.end_s - viewport.start_s;
  const middle_s = viewport.start_s + span_s / 2;
  if (key === 'ArrowLeft') viewport.pan(-span_s / 10);
  else if (key === 'ArrowRight') viewport.pan(span_s / 10);
  else if (key === '+' || key === '=') viewport.zoom(1 / 1.5, middle_s);
  else if (key === '-') viewport.zoom(1.5, middle_s);
  else if (key === '0') viewport.show('all', now_s);
  else return false;
  return true;
}
