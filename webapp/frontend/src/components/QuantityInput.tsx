import { NumberInput } from '@mantine/core';
import { type ReactNode, useState } from 'react';
import { fromSI, type Quantity, toSI, type Unit, unitFor } from '@/format/quantities';
import classes from './QuantityInput.module.css';

interface Props {
  label: ReactNode;
  description?: string;
  quantity: Quantity;
  /** SI value; null is empty. */
  value: number | null;
  onChange: (value: number | null) => void;
  /** Whether the field may be empty; `placeholder` says what an empty field means. */
  optional?: boolean;
  placeholder?: string;
  error?: string;
  disabled?: boolean;
  max?: number;
  testId: string;
}

/** An input for a number with a choice of units; `value` is in SI. Every number typed is reported at once. */
export function QuantityInput(props: Props) {
  const { quantity, value, onChange, optional = false, testId } = props;
  const [unit, setUnit] = useState<Unit>(() => unitFor(value ?? 0, quantity));
  const [typed, setTyped] = useState<{ text: string | number; value: number | null } | null>(null);
  // The value changed from outside (undo, another selection): show it in a suitable unit.
  const [shown, setShown] = useState(value);
  if (value !== shown) {
    setShown(value);
    if (typed?.value !== value) {
      setTyped(null);
      if (value !== null) setUnit(unitFor(value, quantity));
    }
  }
  const text = typed ? typed.text : value === null ? '' : fromSI(value, unit);

  const enter = (entered: string | number, at: Unit) => {
    const next =
      typeof entered === 'number' ? toSI(entered, at) : entered.trim() === '' && optional ? null : undefined;
    setTyped({ text: entered, value: next === undefined ? value : next });
    if (next !== undefined && next !== value) onChange(next);
  };
  const choose = (label: string) => {
    const next = quantity.find((candidate) => candidate.label === label) ?? unit;
    setUnit(next);
    if (typeof text === 'number') enter(text, next);
  };

  const missing = text === '' && !optional ? 'Give a number.' : undefined;
  return (
    <NumberInput
      label={props.label}
      description={props.description}
      placeholder={props.placeholder}
      disabled={props.disabled}
      error={props.error ?? missing}
      value={text}
      min={0}
      max={props.max}
      hideControls
      allowNegative={false}
      size="xs"
      onChange={(entered) => enter(entered, unit)}
      onBlur={() => setTyped(null)}
      data-testid={testId}
      rightSectionWidth={quantity.length > 1 ? 78 : 44}
      rightSectionPointerEvents={quantity.length > 1 ? 'all' : 'none'}
      rightSection={
        quantity.length > 1 ? (
          <select
            className={classes.unit}
            aria-label="Unit"
            value={unit.label}
            disabled={props.disabled}
            data-testid={`${testId}-unit`}
            onChange={(event) => choose(event.currentTarget.value)}
          >
            {quantity.map(({ label }) => (
              <option key={label}>{label}</option>
            ))}
          </select>
        ) : (
          <span className={classes.unit}>{unit.label}</span>
        )
      }
    />
  );
}
