import { ActionIcon } from '@mantine/core';
import { IconArrowsMinimize } from '@tabler/icons-react';
import type { NodeProps } from '@xyflow/react';
import { memo } from 'react';
import { setCollapsed } from '@/cluster/groups';
import { editor, useEditor } from './editorStore';
import type { FrameNode } from './flow';
import classes from './nodes.module.css';

/** The frame around a group's nodes: its name selects them, its button collapses it. */
export const GroupFrame = memo(({ data, width, height }: NodeProps<FrameNode>) => {
  const { group } = data;
  const readOnly = useEditor((state) => state.readOnly);
  return (
    <div className={classes.frame} style={{ width, height }} data-testid={`frame-${group.name}`}>
      <div className={classes.frameTitle}>
        <button type="button" onClick={() => editor().select({ nodes: group.members, links: [] })}>
          {group.name}
        </button>
        {!readOnly && (
          <ActionIcon
            size="xs"
            variant="subtle"
            color="gray"
            aria-label={`Collapse ${group.name}`}
            data-testid={`collapse-${group.name}`}
            onClick={() => editor().edit((old) => setCollapsed(old, group.members, true))}
          >
            <IconArrowsMinimize size={13} />
          </ActionIcon>
        )}
      </div>
    </div>
  );
});
