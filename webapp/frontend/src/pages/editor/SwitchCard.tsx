import { Tooltip } from '@mantine/core';
import { IconAlertTriangle, IconArrowsShuffle } from '@tabler/icons-react';
import type { NodeProps } from '@xyflow/react';
import { memo } from 'react';
import type { SwitchNode } from './flow';
import { Handles } from './Handles';
import classes from './nodes.module.css';

/** A switch on the canvas: its name, and a sign if it has a problem. */
export const SwitchCard = memo(({ data, selected }: NodeProps<SwitchNode>) => {
  const states = [
    classes.switch,
    selected && classes.selected,
    data.problem && classes.problem,
    data.off && classes.off,
  ];
  return (
    <Tooltip label={data.problem} disabled={!data.problem} multiline maw={320} color="red">
      <div
        className={classes.wrap}
        data-testid={`node-${data.name}`}
        data-problem={data.problem ? 'yes' : undefined}
      >
        <div className={states.filter(Boolean).join(' ')}>
          {data.problem ? (
            <IconAlertTriangle size={14} color="var(--loom-bad)" />
          ) : (
            <IconArrowsShuffle size={14} color="var(--loom-dim)" />
          )}
          {data.name}
        </div>
        <Handles name={data.name} selected={selected} />
      </div>
    </Tooltip>
  );
});
