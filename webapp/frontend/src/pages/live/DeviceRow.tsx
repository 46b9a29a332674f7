import { Badge, Group, Text, Tooltip } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import type { DeviceSpec } from '@/api/types';
import { bytes, flopRate, percent, three } from '@/format/units';
import { aboutState, stateText, type DeviceState } from '@/run/data/activity';
import type { DeviceView } from '@/run/data/snapshot';
import { deviceColor } from '@/theme/deviceColors';
import { DeviceControls } from './DeviceControls';
import { ProcessLog } from './ProcessLog';
import { usePending } from './usePending';
import { useRow } from './useRow';
import classes from './live.module.css';

const WARNINGS = new Set<DeviceState>(['silent', 'frozen']);

interface Props {
  runId: number;
  device: DeviceView;
  spec: DeviceSpec;
  rank: number;
  refusals: number;
  enabled: boolean;
  /** Whether the run keeps saying which devices are silent. */
  isHeard: boolean;
  chosen: boolean;
  /** Whether the focus moves here. */
  focused: boolean;
  onChoose: () => void;
}

/** One device: memory, activity and controls. */
export function DeviceRow({
  runId,
  device,
  spec,
  rank,
  refusals,
  enabled,
  isHeard,
  chosen,
  focused,
  onChoose,
}: Props) {
  const [pending, send] = usePending(runId, device.changes, refusals);
  const row = useRow(chosen, focused, onChoose);
  const { shares } = device.activity;
  return (
    <div
      {...row}
      className={classes.control}
      data-chosen={chosen || undefined}
      data-testid={`device-row-${device.name}`}
    >
      <Group justify="space-between" wrap="nowrap" gap="xs">
        <Group gap={7} wrap="nowrap" className={classes.linkName}>
          <span className={classes.dot} style={{ background: deviceColor(rank) }} />
          <Text size="sm" fw={600} truncate>
            {device.name}
          </Text>
          <State device={device} isHeard={isHeard} />
        </Group>
        <Group gap={8} wrap="nowrap">
          {pending && (
            <Badge size="sm" variant="light" color="yellow" tt="none">
              pending
            </Badge>
          )}
        </Group>
      </Group>
      <Text size="xs" c="dimmed">
        {spec.title || spec.role} · {flopRate(spec.flop_per_s)}
      </Text>
      <div className={classes.use}>
        <span className={classes.useLabel}>memory</span>
        <div className={classes.useBar}>
          <div
            style={{
              width: `${Math.min(device.residentBytes / device.memoryBytes, 1) * 100}%`,
              background: deviceColor(rank),
            }}
          />
        </div>
        <span className={classes.memory} data-testid={`device-memory-${device.name}`}>
          {device.residentBytes > 0 ? bytes(device.residentBytes) : '–'} of {bytes(device.memoryBytes)}
        </span>
      </div>
      <Text size="xs" c="dimmed" mt={2}>
        computing {percent(shares.compute)} · sending {percent(shares.send)} · waiting {percent(shares.wait)}
      </Text>
      <DeviceControls
        key={refusals}
        name={device.name}
        slowdown={device.slowdown}
        failed={device.failedAt_s !== null}
        frozen={device.frozenAt_s !== null}
        enabled={enabled && !pending}
        send={send}
      />
      <ProcessLog device={device.name} lines={device.output} />
    </div>
  );
}

/** What the device does; an icon and a colour where something is wrong with it, and what that means. */
function State({ device, isHeard }: { device: DeviceView; isHeard: boolean }) {
  const { state } = device.activity;
  const color = state === 'failed' ? 'var(--loom-bad)' : WARNINGS.has(state) ? 'var(--loom-warn)' : undefined;
  const slower = device.slowdown === 1 || color ? '' : `, ${three(device.slowdown)} × slower`;
  const heard = isHeard && !color ? 'Its process sent a heartbeat in the last 2 s.' : '';
  const about = [aboutState(device), heard].filter(Boolean).join(' ');
  return (
    <Tooltip label={about} disabled={!about} multiline maw={300}>
      <Text
        size="xs"
        c={color ?? 'dimmed'}
        className={classes.rowState}
        data-testid={`device-row-state-${device.name}`}
      >
        {color && <IconAlertTriangle size={13} aria-hidden />}
        {stateText(device)}
        {slower}
      </Text>
    </Tooltip>
  );
}
