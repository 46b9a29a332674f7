import { Button, Group, Popover, Text } from '@mantine/core';
import { useState } from 'react';
import type { Command } from '@/api/types';
import type { DeviceView } from '@/run/data/snapshot';
import { NumberField } from './NumberField';

interface Props {
  device: DeviceView;
  enabled: boolean;
  submit: (command: Exclude<Command, { kind: 'stop' }>) => void;
}

/** Buttons of a device: slow it down, freeze it, restore it, kill it (after a confirmation) or let it join again. */
export function DeviceControls({ device, enabled, submit }: Props) {
  const { name } = device;
  const away = device.failedAt_s !== null || device.frozenAt_s !== null;
  return (
    <Group gap={6} wrap="nowrap" mt={7} align="flex-end">
      <Slowdown device={device} enabled={enabled && !away} submit={submit} />
      {away ? (
        <Button
          size="compact-xs"
          variant="light"
          color="green"
          disabled={!enabled}
          data-testid={`device-join-${name}`}
          onClick={() => submit({ kind: 'join_device', device: name })}
        >
          {device.failedAt_s === null ? 'Restore' : 'Join again'}
        </Button>
      ) : (
        <>
          <Button
            size="compact-xs"
            variant="default"
            disabled={!enabled}
            data-testid={`device-freeze-${name}`}
            title="Stop the process without closing its connections"
            onClick={() => submit({ kind: 'freeze_device', device: name })}
          >
            Freeze
          </Button>
          <Drop name={name} enabled={enabled} onDrop={() => submit({ kind: 'drop_device', device: name })} />
        </>
      )}
    </Group>
  );
}

function Slowdown({ device, enabled, submit }: Props) {
  return (
    <NumberField
      w={128}
      prefix="takes "
      suffix=" × as long"
      value={device.slowdown}
      min={0.01}
      max={1000}
      decimalScale={2}
      disabled={!enabled}
      aria-label={`Slow ${device.name} down by this factor`}
      testId={`device-slow-${device.name}`}
      onSet={(factor) => submit({ kind: 'slow_device', device: device.name, factor })}
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
