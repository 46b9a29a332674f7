import { ActionIcon, Button, Group, TextInput, Tooltip } from '@mantine/core';
import {
  IconLayoutAlignBottom,
  IconLayoutAlignCenter,
  IconLayoutAlignLeft,
  IconLayoutAlignMiddle,
  IconLayoutAlignRight,
  IconLayoutAlignTop,
  IconLayoutDistributeHorizontal,
  IconLayoutDistributeVertical,
} from '@tabler/icons-react';
import { canGroup, groupsOf, renameGroup, setCollapsed, ungroup } from '@/cluster/groups';
import type { View } from './command';
import { commandOf } from './commands';
import classes from './editor.module.css';
import { editor, useDrawing, useEditor } from './editorStore';

const BUTTONS = [
  ['align-left', IconLayoutAlignLeft],
  ['align-centre', IconLayoutAlignCenter],
  ['align-right', IconLayoutAlignRight],
  ['align-top', IconLayoutAlignTop],
  ['align-middle', IconLayoutAlignMiddle],
  ['align-bottom', IconLayoutAlignBottom],
  ['distribute-x', IconLayoutDistributeVertical],
  ['distribute-y', IconLayoutDistributeHorizontal],
] as const;

/** Aligns, distributes and groups the selected nodes; shows the groups that they are in. */
export function ArrangePanel({ view }: { view: View }) {
  const drawing = useDrawing();
  const selection = useEditor((state) => state.selection);
  const groups = groupsOf(drawing.layout, selection.nodes);
  if (selection.nodes.length < 2 && groups.length === 0) return null;
  const { edit } = editor();
  return (
    <div className={classes.section} data-testid="arrange">
      <span className="overline">Arrange</span>
      {selection.nodes.length > 1 && (
        <Group gap={4}>
          {BUTTONS.map(([id, Icon]) => {
            const command = commandOf(id);
            return (
              <Tooltip key={id} label={command.label}>
                <ActionIcon
                  variant="default"
                  aria-label={command.label}
                  disabled={!command.able(selection, drawing)}
                  onClick={() => command.run(view)}
                  data-testid={id}
                >
                  <Icon size={16} />
                </ActionIcon>
              </Tooltip>
            );
          })}
        </Group>
      )}
      {groups.map((group) => {
        const index = drawing.layout.groups.indexOf(group);
        return (
          <div key={index}>
            <TextInput
              size="xs"
              label="Group"
              value={group.name}
              maxLength={60}
              data-testid="group-name"
              onChange={(event) => {
                const name = event.currentTarget.value;
                if (name) edit((old) => renameGroup(old, index, name), `group ${index}`);
              }}
            />
            <Group gap={6} mt={6}>
              <Button
                size="compact-xs"
                variant="default"
                onClick={() => edit((old) => setCollapsed(old, group.members, !group.collapsed))}
              >
                {group.collapsed ? 'Expand' : 'Collapse'}
              </Button>
              <Button
                size="compact-xs"
                variant="default"
                onClick={() => edit((old) => ungroup(old, group.members))}
              >
                Dissolve
              </Button>
            </Group>
          </div>
        );
      })}
      {canGroup(drawing.layout, selection.nodes) && (
        <Button
          size="compact-xs"
          variant="default"
          onClick={() => commandOf('group').run(view)}
          data-testid="group"
          style={{ alignSelf: 'flex-start' }}
        >
          Group these nodes
        </Button>
      )}
    </div>
  );
}
