import { useRef } from 'react';
import { amount, type Division, total, type Unit, withBoundary } from './division';
import classes from './plan.module.css';

interface Props {
  division: Division;
  unit: Unit;
  colorOf: (device: string) => string;
  onChange: (division: Division) => void;
}

/** The shares side by side; the boundaries between them are dragged, or moved with the arrow keys. */
export function DivisionBar({ division, unit, colorOf, onChange }: Props) {
  const bar = useRef<HTMLDivElement>(null);
  const whole = total(division, unit);
  const widths = division.shares.map((share) => (100 * amount(share, unit)) / Math.max(1, whole));
  const ends = division.shares.map((_, i) =>
    division.shares.slice(0, i + 1).reduce((sum, share) => sum + amount(share, unit), 0),
  );
  const drag = (index: number, x: number) => {
    const box = bar.current?.getBoundingClientRect();
    if (box) onChange(withBoundary(division, unit, index, ((x - box.left) / box.width) * whole));
  };
  return (
    <div className={classes.bar} ref={bar} data-testid={`plan-bar-${unit}`}>
      {division.shares.map((share, i) => (
        <div
          key={share.device}
          className={classes.share}
          style={{ width: `${widths[i]}%`, background: colorOf(share.device) }}
          title={`${share.device}: ${amount(share, unit)} ${unit}`}
        >
          {(widths[i] ?? 0) > 8 && amount(share, unit)}
        </div>
      ))}
      {division.shares.slice(0, -1).map((share, i) => (
        <button
          key={share.device}
          type="button"
          role="slider"
          className={classes.boundary}
          style={{ left: `${(100 * (ends[i] ?? 0)) / Math.max(1, whole)}%` }}
          aria-label={`Boundary behind ${share.device}`}
          aria-valuemin={0}
          aria-valuemax={whole}
          aria-valuenow={ends[i]}
          aria-valuetext={`${amount(share, unit)} ${unit} on ${share.device}`}
          data-testid={`plan-boundary-${share.device}`}
          onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
          onPointerMove={(event) =>
            event.currentTarget.hasPointerCapture(event.pointerId) && drag(i, event.clientX)
          }
          onKeyDown={(event) => {
            const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
            if (!step) return;
            event.preventDefault();
            onChange(withBoundary(division, unit, i, (ends[i] ?? 0) + step));
          }}
        />
      ))}
    </div>
  );
}
