import { Group, NumberInput } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { Command, Direction } from '@/api/types';
import type { DirectionData } from '@/run/data/runData';

interface Props {
  link: string;
  direction: Direction;
  side: DirectionData;
  enabled: boolean;
  submit: (command: Exclude<Command, { kind: 'stop' }>) => void;
}

/** One-way delay and packet loss of a link, set when the field is left or Enter is pressed. */
export function LinkConditions({ link, direction, side, enabled, submit }: Props) {
  return (
    <Group gap="xs" grow mt={8}>
      <Condition
        label="One-way delay"
        suffix=" ms"
        value={side.delay_s * 1e3}
        enabled={enabled}
        testId={`link-delay-${link}`}
        onSet={(ms) => submit({ kind: 'set_delay', link, delay_s: ms / 1e3, direction })}
      />
      <Condition
        label="Packet loss"
        suffix=" %"
        value={side.loss_frac * 100}
        max={99}
        enabled={enabled}
        testId={`link-loss-${link}`}
        onSet={(hundredths) => submit({ kind: 'set_loss', link, loss_frac: hundredths / 100, direction })}
      />
    </Group>
  );
}

interface ConditionProps {
  label: string;
  suffix: string;
  value: number;
  max?: number;
  enabled: boolean;
  testId: string;
  onSet: (value: number) => void;
}

function Condition({ label, suffix, value, max, enabled, testId, onSet }: ConditionProps) {
  const [draft, setDraft] = useState<number | string>(value);
  useEffect(() => setDraft(value), [value]);
  const finish = () => {
    if (typeof draft === 'number' && draft !== value) onSet(draft);
    else setDraft(value);
  };
  return (
    <NumberInput
      size="xs"
      label={label}
      suffix={suffix}
      value={draft}
      min={0}
      max={max}
      decimalScale={3}
      allowNegative={false}
      hideControls
      disabled={!enabled}
      data-testid={testId}
      onChange={setDraft}
      onBlur={finish}
      onKeyDown={(event) => event.key === 'Enter' && event.currentTarget.blur()}
    />
  );
}
