/** Small pieces that several views share. */
import type { CSSProperties, ReactNode } from 'react';
import type { Mark } from '@/api/types';
import { deviceColor } from '@/theme/deviceColors';
import classes from './views.module.css';

export const colorOf = (rank: number): CSSProperties => ({ '--piece': deviceColor(rank) }) as CSSProperties;

export function DeviceName({ rank, name, gone = false }: { rank: number; name: string; gone?: boolean }) {
  return (
    <span className={classes.name}>
      <span className={classes.dot} style={{ background: deviceColor(rank) }} />
      <span className={gone ? classes.gone : undefined}>{name}</span>
    </span>
  );
}

export interface BarPiece {
  rank: number;
  start: number;
  stop: number;
  label: string;
  title: string;
  kind?: 'backup';
}

/** One whole of `size` units, divided among devices. */
export function ShareBar({
  pieces,
  size,
  thin = false,
  testId,
}: {
  pieces: BarPiece[];
  size: number;
  thin?: boolean;
  testId?: string;
}) {
  return (
    <div className={classes.bar} data-thin={thin || undefined} data-testid={testId}>
      {pieces.map((piece) => (
        <div
          key={`${piece.rank} ${piece.start}`}
          className={classes.piece}
          data-kind={piece.kind}
          title={piece.title}
          style={{
            ...colorOf(piece.rank),
            left: `${(piece.start / size) * 100}%`,
            width: `${((piece.stop - piece.start) / size) * 100}%`,
          }}
        >
          {thin ? '' : piece.label}
        </div>
      ))}
    </div>
  );
}

/** The newest marks of a method, as sentences. */
export function MethodEvents({
  marks,
  describe,
  most = 5,
}: {
  marks: readonly Mark[];
  describe: (mark: Mark) => ReactNode;
  most?: number;
}) {
  const shown = marks.slice(-most);
  if (shown.length === 0) return null;
  return (
    <div className={classes.events} data-testid="method-events">
      {shown.map((mark, at) => (
        <span key={marks.length - shown.length + at}>
          <b>{mark.time_s.toFixed(3)} s</b> {describe(mark)}
        </span>
      ))}
    </div>
  );
}

export function range(start: number, stop: number): string {
  return stop - start === 1 ? String(start) : `${start}–${stop - 1}`;
}
