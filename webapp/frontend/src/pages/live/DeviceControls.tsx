import { Button, Group, Popover, Text } from '@mantine/core';
import { memo, useState } from 'react';
import type { LiveCommand } from '@/api/types';
import { NumberField } from './NumberField';

interface Props {
  name: string;
  /** How many times as long it takes. */
  slowdown: number;
  failed: boolean;
  frozen: boolean;
  enabled: boolean;
  send: (command: LiveCommand) => void;
}

/** Buttons of a device: slow it down, freeze it, restore it, kill it (after a confirmation) or let it join again. */
export const DeviceControls = memo(function DeviceControls({
  name,
  slowdown,
  failed,
  frozen,
  enabled,
  send,
}: Props) {
  const away = failed || frozen;
  return (
    <Group gap={6} wrap="nowrap" mt={7} align="flex-end">
      <Slowdown name={name} slowdown={slowdown} enabled={enabled && !away} send={send} />
      {away ? (
        <Button
          size="compact-xs"
          variant="light"
          color="green"
          disabled={!enabled}
          data-testid={`device-join-${name}`}
          onClick={() => send({ kind: 'join_device', device: name })}
        >
          {failed ? 'Join again' : 'Restore'}
        </Button>
      ) : (
        <>
          <Button
            size="compact-xs"
            variant="default"
            disabled={!enabled}
            data-testid={`device-freeze-${name}`}
            title="Stop the process without closing its connections"
            onClick={() => send({ kind: 'freeze_device', device: name })}
          >
            Freeze
          </Button>
          <Drop name={name} enabled={enabled} onDrop={() => send({ kind: 'drop_device', device: name })} />
        </>
      )}
    </Group>
  );
});

function Slowdown({ name, slowdown, enabled, send }: Omit<Props, 'failed' | 'frozen'>) {
  return (
    <NumberField
      w={128}
      prefix="takes "
      suffix=" × as long"
      value={slowdown}
      min={0.01}
      max={1000}
      decimalScale={2}
      disabled={!enabled}
      aria-label={`Slow ${name} down by this factor`}
      testId={`device-slow-${name}`}
      onSet={(factor) => send({ kind: 'slow_device', device: name, factor })}
    />
  );
}

function Drop({ name, enabled, onDrop }: { name: string; enabled: boolean; onDrop: () => void }) {
  const [asking, setAsking] = useState(false);
  return (
    <Popover opened={asking} onChange={setAsking} position="bottom-end" withArrow shadow="md" width={260}>
      <Popover.Target>
        <Button
          size="compact-xs"
          variant="light"
          color="red"
          disabled={!enabled}
          aria-label={`Drop device ${name}`}
          data-testid={`device-switch-${name}`}
          onClick={() => setAsking(true)}
        >
          Drop
        </Button>
      </Popover.Target>
      <Popover.Dropdown>
        <Text size="sm">
          Kill the process of {name} and cut its links? It may join again later, with empty memory.
        </Text>
        <Group justify="flex-end" gap="xs" mt="sm">
          <Button
            size="xs"
            variant="default"
            data-testid={`device-keep-${name}`}
            onClick={() => setAsking(false)}
          >
            Keep it
          </Button>
          <Button
            size="xs"
            color="red"
            data-testid={`device-drop-${name}`}
            onClick={() => {
              setAsking(false);
              onDrop();
            }}
          >
            Drop {name}
          </Button>
        </Group>
      </Popover.Dropdown>
    </Popover>
  );
}
