import { TextInput } from '@mantine/core';
import { useState } from 'react';

interface Props {
  label: string;
  value: string;
  /** The reason why this cannot be the name; null if it can. */
  refuse: (name: string) => string | null;
  onRename: (name: string) => void;
  disabled?: boolean;
  testId: string;
}

/** A text field that reports its value on Enter or blur; Escape restores the old value. */
export function NameInput({ label, value, refuse, onRename, disabled, testId }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  const text = typed ?? value;
  const reason = text === value ? null : refuse(text);
  const finish = () => {
    if (typed !== null && typed !== value && !reason) onRename(typed);
    setTyped(null);
  };
  return (
    <TextInput
      label={label}
      size="xs"
      value={text}
      error={reason}
      disabled={disabled}
      data-testid={testId}
      spellCheck={false}
      onChange={(event) => setTyped(event.currentTarget.value)}
      onBlur={finish}
      onKeyDown={(event) => {
        if (event.key === 'Enter') finish();
        if (event.key === 'Escape') setTyped(null);
      }}
    />
  );
}
