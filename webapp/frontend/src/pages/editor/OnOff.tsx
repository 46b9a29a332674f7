import { Switch } from '@mantine/core';
import { setDisabled } from '@/cluster/drawing';
import { editor, useDrawing } from './editorStore';

/** The switch of a node or link. What is off stays in the drawing, grey, but takes no part in runs. */
export function OnOff({ names, readOnly }: { names: readonly string[]; readOnly: boolean }) {
  const { layout } = useDrawing();
  const off = names.filter((name) => layout.disabled.includes(name)).length;
  const on = off === 0;
  return (
    <Switch
      size="xs"
      label={
        on
          ? 'Takes part in runs'
          : off < names.length
            ? `${off} of ${names.length} switched off`
            : 'Switched off'
      }
      checked={on}
      disabled={readOnly}
      data-testid="item-enabled"
      onChange={(event) => {
        const next = !event.currentTarget.checked;
        editor().edit((old) => setDisabled(old, names, next));
      }}
    />
  );
}
