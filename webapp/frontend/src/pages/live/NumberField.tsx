import { NumberInput, type NumberInputProps } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';

interface Props extends Omit<
  NumberInputProps,
  'value' | 'min' | 'max' | 'onChange' | 'onBlur' | 'onKeyDown'
> {
  value: number;
  min: number;
  max?: number;
  /** Called with another number than `value`, when the field is left or Enter is pressed. */
  onSet: (value: number) => void;
  testId: string;
}

/** A number from `min` to `max` that takes effect when the field is left; what is no number restores the one in force. */
export function NumberField({ value, min, max = Infinity, onSet, testId, ...props }: Props) {
  const [draft, setDraft] = useState<number | string>(value);
  const isTyped = useRef(false);
  useEffect(() => {
    if (!isTyped.current) setDraft(value); // what comes meanwhile does not replace what somebody types
  }, [value]);
  const finish = () => {
    if (!isTyped.current) return;
    isTyped.current = false;
    const found = typeof draft === 'number' ? Math.min(Math.max(draft, min), max) : value;
    setDraft(found);
    if (found !== value) onSet(found);
  };
  return (
    <NumberInput
      size="xs"
      allowNegative={false}
      hideControls
      data-testid={testId}
      {...props}
      value={draft}
      onChange={(next) => {
        isTyped.current = true;
        setDraft(next);
      }}
      onBlur={finish}
      onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
    />
  );
}
