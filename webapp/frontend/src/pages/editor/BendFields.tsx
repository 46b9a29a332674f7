import { ActionIcon, Button, Group, NumberInput } from '@mantine/core';
import { IconX } from '@tabler/icons-react';
import { positionsOf } from '@/cluster/autoLayout';
import { linkName } from '@/cluster/drawing';
import { addBend, moveBend, removeBend } from '@/cluster/linkEdits';
import classes from './editor.module.css';
import { editor, useDrawing } from './editorStore';

/** The bends of a link as numbers: what dragging does, with the keyboard. */
export function BendFields({ name, readOnly }: { name: string; readOnly: boolean }) {
  const { spec, layout } = useDrawing();
  const { edit } = editor();
  const points = layout.bends[name] ?? [];
  if (readOnly && points.length === 0) return null;
  const addInTheMiddle = () => {
    const link = spec.links.find((each) => linkName(each) === name);
    const at = positionsOf(spec, layout);
    const [from, to] = [points.at(-1) ?? (link && at[link.a]), link && at[link.b]];
    if (from && to)
      edit((old) => addBend(old, name, { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 + 48 }));
  };
  return (
    <div className={classes.section}>
      <span className="overline">Bends</span>
      {points.map((point, index) => (
        <Group key={index} gap={6} wrap="nowrap">
          {(['x', 'y'] as const).map((axis) => (
            <NumberInput
              key={axis}
              size="xs"
              aria-label={`Bend ${index + 1}, ${axis}`}
              prefix={`${axis} `}
              step={8}
              value={point[axis]}
              disabled={readOnly}
              onChange={(value) =>
                typeof value === 'number' &&
                edit(
                  (old) => moveBend(old, name, index, { ...point, [axis]: value }),
                  `${name} bend ${index}`,
                )
              }
            />
          ))}
          {!readOnly && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label={`Remove bend ${index + 1}`}
              onClick={() => edit((old) => removeBend(old, name, index))}
            >
              <IconX size={14} />
            </ActionIcon>
          )}
        </Group>
      ))}
      {!readOnly && (
        <Button size="compact-xs" variant="default" onClick={addInTheMiddle} data-testid="add-bend">
          Add a bend
        </Button>
      )}
    </div>
  );
}
