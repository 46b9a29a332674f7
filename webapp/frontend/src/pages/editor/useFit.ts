import { getViewportForBounds, useReactFlow } from '@xyflow/react';
import { useCallback } from 'react';
import type { Point } from '@/cluster/point';
import { DEVICE_SIZE } from '@/cluster/autoLayout';

const MOST_ZOOM = 1;
const LEAST_ZOOM = 0.15;
const PADDING = 0.2;
const MOVING_MS = 250;

/** Shows everything: the nodes as they are drawn, or places that they will have as soon as they are drawn again. */
export function useFit() {
  const flow = useReactFlow();
  return useCallback(
    (places?: readonly Point[]) => {
      const canvas = document.querySelector('.react-flow')?.getBoundingClientRect();
      if (!places || !canvas)
        void flow.fitView({ maxZoom: MOST_ZOOM, padding: PADDING, duration: MOVING_MS });
      else {
        const { width, height } = canvas;
        const to = getViewportForBounds(around(places), width, height, LEAST_ZOOM, MOST_ZOOM, PADDING);
        void flow.setViewport(to, { duration: MOVING_MS });
      }
    },
    [flow],
  );
}

/** The rectangle around cards with these centres. */
export function around(places: readonly Point[]) {
  const [x, y] = [places.map((place) => place.x), places.map((place) => place.y)];
  const { width, height } = DEVICE_SIZE;
  return {
    x: Math.min(...x) - width / 2,
    y: Math.min(...y) - height / 2,
    width: Math.max(...x) - Math.min(...x) + width,
    height: Math.max(...y) - Math.min(...y) + height,
  };
}
