import { Button, NumberInput, Select } from '@mantine/core';
import { useState } from 'react';
import type { PlanByHand } from '@/api/types';
import { amount, moved, TITLES, type UnitSize } from './handPlan';
import classes from './plan.module.css';

interface Props {
  plan: PlanByHand;
  units: readonly UnitSize[];
  onChange: (plan: PlanByHand) => void;
}

/** "Move 2 layers from a to b": for devices that are not neighbours in the bar. */
export function MoveForm({ plan, units, onChange }: Props) {
  const names = plan.devices.map(({ device }) => device);
  const [unitName, setUnitName] = useState(units[0]?.name ?? 'layers');
  const unit = units.find(({ name }) => name === unitName) ?? units[0];
  const [count, setCount] = useState<number>(1);
  const [from, setFrom] = useState(names[0] ?? '');
  const [to, setTo] = useState(names[1] ?? '');
  const giver = plan.devices.find(({ device }) => device === from);
  if (!unit || names.length < 2) return null;
  const wanted = Math.max(unit.step, count);
  return (
    <div className={classes.move}>
      <span>Move</span>
      <NumberInput
        size="xs"
        w={72}
        min={unit.step}
        step={unit.step}
        allowDecimal={false}
        value={wanted}
        onChange={(next) => typeof next === 'number' && setCount(next)}
        aria-label="How many"
        data-testid="plan-move-count"
      />
      {units.length > 1 ? (
        <Select
          size="xs"
          w={110}
          data={units.map(({ name }) => ({ value: name, label: TITLES[name] }))}
          value={unit.name}
          onChange={(name) => name && setUnitName(name)}
          allowDeselect={false}
          aria-label="Of what"
        />
      ) : (
        <span>{TITLES[unit.name]}</span>
      )}
      <span>from</span>
      <Select
        size="xs"
        w={130}
        data={names}
        value={from}
        onChange={(name) => name && setFrom(name)}
        allowDeselect={false}
        aria-label="From device"
        data-testid="plan-move-from"
      />
      <span>to</span>
      <Select
        size="xs"
        w={130}
        data={names}
        value={to}
        onChange={(name) => name && setTo(name)}
        allowDeselect={false}
        aria-label="To device"
        data-testid="plan-move-to"
      />
      <Button
        size="xs"
        variant="light"
        disabled={from === to || amount(giver, unit.name) === 0}
        onClick={() => onChange(moved(plan, unit, from, to, wanted))}
        data-testid="plan-move"
      >
        Move
      </Button>
    </div>
  );
}
