import { NumberInput } from '@mantine/core';
import { Fragment } from 'react';
import type { DeviceReport, PlanByHand } from '@/api/types';
import { bytes, percent } from '@/format/units';
import { amount, TITLES, type UnitSize, withAmount } from './handPlan';
import classes from './plan.module.css';

interface Props {
  plan: PlanByHand;
  units: readonly UnitSize[];
  colorOf: (device: string) => string;
  /** The devices with the strategy's own plan, and with this one. */
  before: readonly DeviceReport[] | undefined;
  after: readonly DeviceReport[] | undefined;
  onChange: (plan: PlanByHand) => void;
}

/** Every device with what it has, and its memory against its limit. */
export function ShareTable({ plan, units, colorOf, before, after, onChange }: Props) {
  return (
    <div
      className={classes.fields}
      style={{ gridTemplateColumns: `minmax(90px, 1fr) ${'92px '.repeat(units.length)}minmax(190px, 2fr)` }}
    >
      <span>device</span>
      {units.map(({ name }) => (
        <span key={name}>{TITLES[name]}</span>
      ))}
      <span>peak memory, of the device’s</span>
      {plan.devices.map((share, index) => (
        <Fragment key={share.device}>
          <div className={classes.device}>
            <i className={classes.dot} style={{ background: colorOf(share.device) }} />
            {share.device}
          </div>
          {units.map((unit) => (
            <NumberInput
              key={unit.name}
              size="xs"
              min={0}
              step={unit.step}
              allowDecimal={false}
              aria-label={`${TITLES[unit.name]} on ${share.device}`}
              value={amount(share, unit.name)}
              onChange={(next) => typeof next === 'number' && onChange(withAmount(plan, unit, index, next))}
              data-testid={`plan-${unit.name}-${share.device}`}
            />
          ))}
          <Memory
            before={before?.find(({ name }) => name === share.device)}
            after={after?.find(({ name }) => name === share.device)}
            color={colorOf(share.device)}
          />
        </Fragment>
      ))}
    </div>
  );
}

function Memory({
  before,
  after,
  color,
}: {
  before: DeviceReport | undefined;
  after: DeviceReport | undefined;
  color: string;
}) {
  const now = after ?? before;
  if (!now) return <div className={classes.memory} />;
  const share = now.peak_memory_bytes / now.memory_bytes;
  const changed = before && after && Math.abs(after.peak_memory_bytes / before.peak_memory_bytes - 1) > 0.001;
  return (
    <div className={classes.memory} title={`${percent(share)} of ${bytes(now.memory_bytes)}`}>
      <div className={classes.track}>
        <i style={{ width: `${Math.min(100, 100 * share)}%`, background: color }} />
        {before && (
          <b
            style={{ left: `${Math.min(100, (100 * before.peak_memory_bytes) / before.memory_bytes)}%` }}
            title={`${bytes(before.peak_memory_bytes)} with the strategy’s own plan`}
          />
        )}
      </div>
      <small>
        {changed && `${bytes(before.peak_memory_bytes)} → `}
        {bytes(now.peak_memory_bytes)} of {bytes(now.memory_bytes)}
      </small>
    </div>
  );
}
