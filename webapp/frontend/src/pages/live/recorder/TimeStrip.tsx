import { useElementSize } from '@mantine/hooks';
import { useRef } from 'react';
import { seconds } from '@/format/units';
import { KINDS, subjectOf } from '@/run/scenario/changes';
import classes from './recorder.module.css';
import type { Row } from './row';

interface Props {
  rows: readonly Row[];
  end_s: number;
  onMove: (row: Row, at_s: number) => void;
}

/** Part of the strip that a press of an arrow key moves a change by. */
const KEY_STEP = 0.005;

/** The changes on a strip of time: drag one, or move it with the arrow keys. */
export function TimeStrip({ rows, end_s, onMove }: Props) {
  const { ref, width } = useElementSize();
  const dragged = useRef<{ row: Row; x: number; at_s: number } | null>(null);
  const length_s = Math.max(end_s, ...rows.map((row) => row.change.at_s)) * 1.02 || 1;
  return (
    <div ref={ref} className={classes.strip}>
      {rows.map((row) => {
        const { at_s, kind } = row.change;
        const label = KINDS.find(({ value }) => value === kind)!.label;
        return (
          <button
            key={row.key}
            type="button"
            className={classes.stop}
            style={{ left: `${(at_s / length_s) * 100}%` }}
            title={`${subjectOf(row.change)} ${label} at ${seconds(at_s)}`}
            aria-label={`${subjectOf(row.change)} ${label} at ${seconds(at_s)}: arrow keys move it`}
            data-testid="recorder-stop"
            onPointerDown={(event) => {
              event.currentTarget.setPointerCapture(event.pointerId);
              dragged.current = { row, x: event.clientX, at_s };
            }}
            onPointerMove={(event) => {
              const from = dragged.current;
              if (!from || from.row.key !== row.key || width === 0) return;
              onMove(row, Math.max(0, from.at_s + ((event.clientX - from.x) / width) * length_s));
            }}
            onPointerUp={() => {
              dragged.current = null;
            }}
            onKeyDown={(event) => {
              const sign = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
              if (sign !== 0) onMove(row, Math.max(0, at_s + sign * KEY_STEP * length_s));
            }}
          />
        );
      })}
      <span className={classes.stripStart}>0 s</span>
      <span className={classes.stripEnd}>{seconds(length_s)}</span>
    </div>
  );
}
