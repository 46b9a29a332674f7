import { ActionIcon, Tooltip } from '@mantine/core';
import { IconAlertTriangle, IconArrowsMaximize, IconStack2 } from '@tabler/icons-react';
import type { NodeProps } from '@xyflow/react';
import { memo } from 'react';
import { setCollapsed } from '@/cluster/groups';
import { editor, useEditor } from './editorStore';
import type { CollapsedNode } from './flow';
import { Handles } from './Handles';
import classes from './nodes.module.css';

/** A collapsed group on the canvas: its name, how many nodes it has, and a button that shows them. */
export const CollapsedCard = memo(({ data, selected }: NodeProps<CollapsedNode>) => {
  const { group, problem } = data;
  const readOnly = useEditor((state) => state.readOnly);
  const states = [classes.device, classes.stack, selected && classes.selected, problem && classes.problem];
  return (
    <div className={classes.wrap} data-testid={`group-${group.name}`}>
      <div className={states.filter(Boolean).join(' ')}>
        <div className={classes.name}>
          <IconStack2 size={15} color="var(--loom-dim)" />
          <span>{group.name}</span>
          {problem && (
            <Tooltip label={problem} multiline maw={320} color="red">
              <IconAlertTriangle size={14} color="var(--loom-bad)" aria-label="has a problem" />
            </Tooltip>
          )}
        </div>
        <div className={classes.title}>
          {group.members.length} {group.members.length === 1 ? 'node' : 'nodes'}
        </div>
        {!readOnly && (
          <ActionIcon
            className={`${classes.corner} nodrag`}
            size="sm"
            variant="subtle"
            color="gray"
            aria-label={`Expand ${group.name}`}
            data-testid={`expand-${group.name}`}
            onClick={() => editor().edit((old) => setCollapsed(old, group.members, false))}
          >
            <IconArrowsMaximize size={14} />
          </ActionIcon>
        )}
      </div>
      <Handles name={group.name} selected={false} />
    </div>
  );
});
