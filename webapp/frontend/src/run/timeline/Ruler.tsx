import { Tooltip } from '@mantine/core';
import { useCallback, useRef } from 'react';
import { AxisCanvas } from './AxisCanvas';
import { drawTicks, type Plane } from './axis';
import { xOf } from './scale';
import classes from './timeline.module.css';
import type { Viewport } from './viewport';

const AXIS = 20;
const FLAGS = 20;

export interface Flag {
  time_s: number;
  /** Short: what changed. */
  label: string;
  /** Who, when and with what effect. */
  details: string[];
}

interface Props {
  viewport: Viewport;
  now: (wall_ms: number) => number;
  flags: readonly Flag[];
  labelWidth: number;
  onPick: (time_s: number) => void;
}

/** The time axis that several canvases below it share, and above it a named flag at every change. */
export function Ruler({ viewport, now, flags, labelWidth, onPick }: Props) {
  const strip = useRef<HTMLDivElement>(null);
  const draw = useCallback(
    (plane: Plane) => {
      plane.ctx.fillStyle = plane.colors.surface;
      plane.ctx.fillRect(0, 0, plane.width, AXIS);
      drawTicks(plane, AXIS);
      place(strip.current, flags, plane.viewport, plane.width, labelWidth);
    },
    [flags, labelWidth],
  );
  return (
    <div className={classes.ruler}>
      <div ref={strip} className={classes.flags} style={{ height: flags.length > 0 ? FLAGS : 0 }}>
        {flags.map((flag, at) => (
          <Tooltip key={at} label={<Details flag={flag} />} multiline maw={320} withinPortal>
            <button
              type="button"
              className={classes.flag}
              data-testid="flag"
              aria-label={[flag.label, ...flag.details].join('. ')}
              onClick={() => onPick(flag.time_s)}
            >
              {flag.label}
            </button>
          </Tooltip>
        ))}
      </div>
      <AxisCanvas
        viewport={viewport}
        labelWidth={labelWidth}
        height={AXIS}
        axisHeight={AXIS}
        draw={draw}
        version={() => 0}
        now={now}
        onPick={onPick}
      />
    </div>
  );
}

function Details({ flag }: { flag: Flag }) {
  return (
    <>
      {flag.details.map((one) => (
        <div key={one}>{one}</div>
      ))}
    </>
  );
}

/** Puts every flag at its time; its name has the room up to the next one. */
function place(
  strip: HTMLElement | null,
  flags: readonly Flag[],
  viewport: Viewport,
  width: number,
  labelWidth: number,
): void {
  if (!strip) return;
  flags.forEach(({ time_s }, at) => {
    const element = strip.children[at];
    if (!(element instanceof HTMLElement)) return;
    const x = xOf(time_s, viewport, width, labelWidth);
    const next = flags[at + 1];
    const end = next ? Math.min(xOf(next.time_s, viewport, width, labelWidth), width) : width;
    element.style.left = `${x}px`;
    element.style.maxWidth = `${Math.max(end - x - 3, 7)}px`;
    element.style.display = x < labelWidth - 1 || x > width ? 'none' : '';
  });
}
