/** What the pointer does on a canvas over a viewport: the wheel zooms, dragging pans; and whether it is seen. */
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

/** React's wheel listeners are passive; this one must prevent scrolling. */
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

export function useDrag(viewport: Viewport, width: number, labelWidth: number) {
  const active = useRef(false);
  const last = useRef(0);
  const moved = useRef(false);
  return useMemo(
    () => ({
      down: (event: React.PointerEvent<HTMLCanvasElement>) => {
        active.current = true;
        moved.current = false;
        last.current = event.clientX;
        event.currentTarget.setPointerCapture(event.pointerId);
      },
      move: (event: React.PointerEvent<HTMLCanvasElement>) => {
        if (!active.current || event.clientX === last.current) return;
        const span = viewport.end_s - viewport.start_s;
        viewport.pan((-(event.clientX - last.current) / Math.max(width - labelWidth, 1)) * span);
        last.current = event.clientX;
        moved.current = true;
      },
      /** Whether the pointer has moved since it was pressed. */
      moved: () => moved.current,
      up: () => {
        active.current = false;
      },
    }),
    [viewport, width, labelWidth],
  );
}
