import { Group } from '@mantine/core';
import type { Direction, LiveCommand } from '@/api/types';
import { memo } from 'react';
import { NumberField } from './NumberField';

interface Props {
  link: string;
  direction: Direction;
  delay_s: number;
  loss_frac: number;
  jitter_s: number;
  enabled: boolean;
  send: (command: LiveCommand) => void;
}

/** One-way delay, jitter and packet loss of a link. */
export const LinkConditions = memo(function LinkConditions({
  link,
  direction,
  delay_s,
  loss_frac,
  jitter_s,
  enabled,
  send,
}: Props) {
  return (
    <Group gap="xs" grow mt={8}>
      <NumberField
        label="One-way delay"
        suffix=" ms"
        value={delay_s * 1e3}
        min={0}
        decimalScale={3}
        disabled={!enabled}
        testId={`link-delay-${link}`}
        onSet={(ms) => send({ kind: 'set_delay', link, delay_s: ms / 1e3, direction })}
      />
      <NumberField
        label="Jitter ±"
        suffix=" ms"
        value={jitter_s * 1e3}
        min={0}
        decimalScale={3}
        disabled={!enabled}
        testId={`link-jitter-${link}`}
        onSet={(ms) => send({ kind: 'set_jitter', link, jitter_s: ms / 1e3 })}
      />
      <NumberField
        label="Packet loss"
        suffix=" %"
        value={loss_frac * 100}
        min={0}
        max={99}
        decimalScale={3}
        disabled={!enabled}
        testId={`link-loss-${link}`}
        onSet={(hundredths) => send({ kind: 'set_loss', link, loss_frac: hundredths / 100, direction })}
      />
    </Group>
  );
});
