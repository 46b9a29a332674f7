import { Tooltip } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useEffect, useRef } from 'react';
import { onPaint } from '@/run/charts/paint';
import { useCanvasColors } from '../charts/colors';
import { drawTicks } from './axis';
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
  flags: readonly Flag[];
  labelWidth: number;
  onPick: (time_s: number) => void;
}

/** The time axis that several canvases below it share, and above it a named flag at every change. */
export function Ruler({ viewport, flags, labelWidth, onPick }: Props) {
  const { ref: box, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const strip = useRef<HTMLDivElement>(null);
  const colors = useCanvasColors();
  useEffect(() => {
    const element = canvas.current;
    const ctx = element?.getContext('2d');
    if (!element || !ctx || width === 0) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = Math.round(width * ratio);
    element.height = Math.round(AXIS * ratio);
    ctx.scale(ratio, ratio);
    let drawn = -1;
    return onPaint(() => {
      if (viewport.version === drawn) return;
      drawn = viewport.version;
      ctx.fillStyle = colors.surface;
      ctx.fillRect(0, 0, width, AXIS);
      drawTicks({ ctx, width, height: AXIS, colors, density: { labelWidth }, viewport }, AXIS);
      place(strip.current, flags, viewport, width, labelWidth);
    });
  }, [viewport, width, colors, labelWidth, flags]);
  return (
    <div ref={box} className={classes.ruler}>
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
      <canvas ref={canvas} className={classes.canvas} style={{ height: AXIS }} aria-hidden />
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
