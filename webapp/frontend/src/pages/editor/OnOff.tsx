import { Switch } from '@mantine/core';
import { setDisabled } from '@/cluster/drawing';
import { editor, useDrawing } from './editorStore';

/** The switch of a node or link. What is off stays in the drawing, grey, but takes no part in runs. */
export function OnOff({ names, readOnly }: { names: readonly string[]; readOnly: boolean }) {
  const { layout } = useDrawing();
  const on = !names.some((name) => layout.disabled.includes(name));
  return (
    <Switch
      size="xs"
      label={on ? 'Takes part in runs' : 'Switched off'}
      checked={on}
      disabled={readOnly}
      data-testid="item-enabled"
      onChange={(event) => {
        const off = !event.currentTarget.checked;
        editor().edit((old) => setDisabled(old, names, off));
      }}
    />
  );
}
