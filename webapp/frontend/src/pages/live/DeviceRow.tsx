import { Badge, Button, Group, Popover, Switch, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import type { DeviceSpec } from '@/api/types';
import { bytes, flopRate, percent } from '@/format/units';
import { sendChange } from '@/run/commands';
import type { DeviceView } from '@/run/snapshot';
import { deviceColor } from '@/theme/deviceColors';
import { usePending } from './usePending';
import classes from './live.module.css';

interface Props {
  runId: number;
  device: DeviceView;
  spec: DeviceSpec;
  rank: number;
  refusals: number;
  enabled: boolean;
  chosen: boolean;
  onChoose: () => void;
}

/** One device: its memory and activity, and a switch that kills it after a second click. */
export function DeviceRow({ runId, device, spec, rank, refusals, enabled, chosen, onChoose }: Props) {
  const [asking, setAsking] = useState(false);
  const lost = device.lostAt_s !== null;
  const [pending, submit] = usePending(lost ? 1 : 0, refusals);
  const row = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  const { shares, state } = device.activity;
  return (
    <div ref={row} className={classes.control} data-chosen={chosen || undefined} data-testid={`device-row-${device.name}`} onFocus={onChoose}>
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Group gap={7} wrap="nowrap" onClick={onChoose} className={classes.linkName}>
          <span className={classes.dot} style={{ background: deviceColor(rank) }} />
          <Text size="sm" fw={600} truncate>{device.name}</Text>
          <Text size="xs" c={lost ? 'red' : 'dimmed'}>{lost ? `lost at ${device.lostAt_s!.toFixed(2)} s` : state}</Text>
        </Group>
        <Group gap={8} wrap="nowrap">
          {pending && <Badge size="sm" variant="light" color="yellow" tt="none">pending</Badge>}
          <Popover opened={asking} onChange={setAsking} position="bottom-end" withArrow shadow="md" width={260}>
            <Popover.Target>
              <Switch
                size="xs" color="green" checked={!lost} disabled={!enabled || lost || pending}
                aria-label={`Device ${device.name} is alive`} data-testid={`device-switch-${device.name}`}
                withThumbIndicator={false} onChange={() => setAsking(true)}
              />
            </Popover.Target>
            <Popover.Dropdown>
              <Text size="sm">Kill the process of {device.name} and cut its links? It does not come back in this run.</Text>
              <Group justify="flex-end" gap="xs" mt="sm">
                <Button size="xs" variant="default" data-testid={`device-keep-${device.name}`} onClick={() => setAsking(false)}>Keep it</Button>
                <Button
                  size="xs" color="red" data-testid={`device-drop-${device.name}`}
                  onClick={() => {
                    setAsking(false);
                    void submit(() => sendChange(runId, { kind: 'drop_device', device: device.name }));
                  }}
                >
                  Drop {device.name}
                </Button>
              </Group>
            </Popover.Dropdown>
          </Popover>
        </Group>
      </Group>
      <Text size="xs" c="dimmed">{spec.title || spec.role} · {flopRate(spec.flop_per_s)}</Text>
      <div className={classes.use}>
        <span className={classes.useLabel}>memory</span>
        <div className={classes.useBar}>
          <div style={{ width: `${Math.min(device.residentBytes / device.memoryBytes, 1) * 100}%`, background: deviceColor(rank) }} />
        </div>
        <span className={classes.memory} data-testid={`device-memory-${device.name}`}>
          {device.residentBytes > 0 ? bytes(device.residentBytes) : '–'} of {bytes(device.memoryBytes)}
        </span>
      </div>
      <Text size="xs" c="dimmed" mt={2}>
        computing {percent(shares.compute)} · sending {percent(shares.send)} · waiting {percent(shares.wait)}
      </Text>
    </div>
  );
}
