import { useRef } from 'react';
import type { PlanByHand } from '@/api/types';
import { amount, TITLES, total, type UnitSize, withBoundary } from './handPlan';
import classes from './plan.module.css';

interface Props {
  plan: PlanByHand;
  unit: UnitSize;
  colorOf: (device: string) => string;
  onChange: (plan: PlanByHand) => void;
}

/** The shares side by side; the boundaries between them are dragged, or moved with the arrow keys. */
export function DivisionBar({ plan, unit, colorOf, onChange }: Props) {
  const bar = useRef<HTMLDivElement>(null);
  const { name } = unit;
  const whole = total(plan, name);
  const widths = plan.devices.map((share) => (100 * amount(share, name)) / Math.max(1, whole));
  const ends = plan.devices.map((_, i) =>
    plan.devices.slice(0, i + 1).reduce((sum, share) => sum + amount(share, name), 0),
  );
  const drag = (index: number, x: number) => {
    const box = bar.current?.getBoundingClientRect();
    if (box) onChange(withBoundary(plan, unit, index, ((x - box.left) / box.width) * whole));
  };
  return (
    <div className={classes.bar} ref={bar} data-testid={`plan-bar-${name}`}>
      {plan.devices.map((share, i) => (
        <div
          key={share.device}
          className={classes.share}
          style={{ width: `${widths[i]}%`, background: colorOf(share.device) }}
          title={`${share.device}: ${amount(share, name)} ${TITLES[name]}`}
        >
          {(widths[i] ?? 0) > 6 && amount(share, name)}
        </div>
      ))}
      {plan.devices.slice(0, -1).map((share, i) => (
        <button
          key={share.device}
          type="button"
          role="slider"
          className={classes.boundary}
          style={{ left: `${(100 * (ends[i] ?? 0)) / Math.max(1, whole)}%` }}
          aria-label={`Boundary of ${TITLES[name]} behind ${share.device}`}
          aria-valuemin={0}
          aria-valuemax={whole}
          aria-valuenow={ends[i]}
          aria-valuetext={`${amount(share, name)} ${TITLES[name]} on ${share.device}`}
          data-testid={`plan-boundary-${name}-${share.device}`}
          onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
          onPointerMove={(event) =>
            event.currentTarget.hasPointerCapture(event.pointerId) && drag(i, event.clientX)
          }
          onKeyDown={(event) => {
            const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
            if (!step) return;
            event.preventDefault();
            onChange(withBoundary(plan, unit, i, (ends[i] ?? 0) + step * unit.step));
          }}
        />
      ))}
    </div>
  );
}
