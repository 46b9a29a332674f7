import { Tooltip } from '@mantine/core';
import { IconAlertTriangle, IconMessage2 } from '@tabler/icons-react';
import type { NodeProps } from '@xyflow/react';
import { memo } from 'react';
import { bytes, flopRate } from '@/format/units';
import type { DeviceNode } from './flow';
import { Handles } from './Handles';
import classes from './nodes.module.css';

/** A device on the canvas: colour, name, title, peak rate and memory. */
export const DeviceCard = memo(({ data, selected }: NodeProps<DeviceNode>) => {
  const { device, color, isSource, off, problem } = data;
  const states = [
    classes.device,
    device.role === 'terminal' && classes.terminal,
    selected && classes.selected,
    problem && classes.problem,
    off && classes.off,
  ];
  return (
    <Tooltip label={problem} disabled={!problem} multiline maw={320} color="red">
      <div
        className={classes.wrap}
        data-testid={`node-${device.name}`}
        data-problem={problem ? 'yes' : undefined}
      >
        <div className={states.filter(Boolean).join(' ')}>
          <div className={classes.stripe} style={{ background: color }} />
          <div className={classes.name}>
            <span>{device.name}</span>
            {isSource && <IconMessage2 size={14} color={color} aria-label="holds the prompt" />}
            {problem && <IconAlertTriangle size={14} color="var(--loom-bad)" aria-label="has a problem" />}
          </div>
          <div className={classes.title}>
            {device.title || (device.role === 'terminal' ? 'Terminal' : 'Device')}
          </div>
          <div className={classes.figures}>
            {flopRate(device.flop_per_s)} · {bytes(device.memory_bytes)}
          </div>
        </div>
        <Handles name={device.name} selected={selected} />
      </div>
    </Tooltip>
  );
});
