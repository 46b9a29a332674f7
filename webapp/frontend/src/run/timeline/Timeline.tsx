import { useCallback, useMemo, useState } from 'react';
import type { PathPiece } from '@/api/types';
import type { RunData } from '@/run/data/runData';
import { colorsByName } from '@/theme/deviceColors';
import { AxisCanvas, type Pointed } from './AxisCanvas';
import type { Plane } from './axis';
import { drawTimeline } from './draw';
import { hitTest, roomy, totalHeight, type Density, type Hit } from './layout';
import { SpanTip } from './SpanTip';
import type { Viewport } from './viewport';

interface Props {
  data: RunData;
  viewport: Viewport;
  /** The present virtual time at a wall clock, extrapolated between events. */
  now: (wall_ms: number) => number;
  density?: Density;
  label: string;
  /** Drawn over the spans: the activities that the end of the run waited for. */
  path?: readonly PathPiece[];
  /** A click on the timeline, not a drag. */
  onPick?: (time_s: number) => void;
}

interface Tip {
  hit: Hit;
  at: Pointed;
}

/** The spans of every device over virtual time, with one row of lanes per device. */
export function Timeline({ data, viewport, now, density = roomy, label, path, onPick }: Props) {
  const [tip, setTip] = useState<Tip | null>(null);
  const deviceColors = useMemo(() => colorsByName(data.devices), [data]);
  const draw = useCallback(
    (plane: Plane) => drawTimeline({ ...plane, density, data, deviceColors, path }),
    [density, data, deviceColors, path],
  );
  const point = (at: Pointed | null) => {
    if (!at || at.pressed || at.time_s === null) return setTip(null);
    const hit = hitTest(data, density, at.y, at.time_s, 2 * at.perPixel_s);
    setTip(hit && { hit, at });
  };
  return (
    <AxisCanvas
      viewport={viewport}
      labelWidth={density.labelWidth}
      height={totalHeight(data.devices.length, density)}
      axisHeight={density.axisHeight}
      draw={draw}
      version={() => data.events}
      now={now}
      label={label}
      testId="timeline"
      onPick={onPick}
      onPoint={point}
    >
      {tip && (
        <SpanTip
          hit={tip.hit}
          x={tip.at.x}
          y={tip.at.y}
          width={tip.at.width}
          color={deviceColors[tip.hit.device.name]}
        />
      )}
    </AxisCanvas>
  );
}
