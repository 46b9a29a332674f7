import { Group } from '@mantine/core';
import type { Command, Direction } from '@/api/types';
import type { DirectionData } from '@/run/data/runData';
import { NumberField } from './NumberField';

interface Props {
  link: string;
  direction: Direction;
  side: DirectionData;
  jitter_s: number;
  enabled: boolean;
  submit: (command: Exclude<Command, { kind: 'stop' }>) => void;
}

/** One-way delay, jitter and packet loss of a link. */
export function LinkConditions({ link, direction, side, jitter_s, enabled, submit }: Props) {
  return (
    <Group gap="xs" grow mt={8}>
      <NumberField
        label="One-way delay"
        suffix=" ms"
        value={side.delay_s * 1e3}
        min={0}
        decimalScale={3}
        disabled={!enabled}
        testId={`link-delay-${link}`}
        onSet={(ms) => submit({ kind: 'set_delay', link, delay_s: ms / 1e3, direction })}
      />
      <NumberField
        label="Jitter ±"
        suffix=" ms"
        value={jitter_s * 1e3}
        min={0}
        decimalScale={3}
        disabled={!enabled}
        testId={`link-jitter-${link}`}
        onSet={(ms) => submit({ kind: 'set_jitter', link, jitter_s: ms / 1e3 })}
      />
      <NumberField
        label="Packet loss"
        suffix=" %"
        value={side.loss_frac * 100}
        min={0}
        max={99}
        decimalScale={3}
        disabled={!enabled}
        testId={`link-loss-${link}`}
        onSet={(hundredths) => submit({ kind: 'set_loss', link, loss_frac: hundredths / 100, direction })}
      />
    </Group>
  );
}
