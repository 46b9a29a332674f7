import { Switch } from '@mantine/core';
import { setDisabled } from '@/cluster/drawing';
import { editor, useDrawing } from './editorStore';

/** Switched off, an item stays in the drawing, greyed, and takes no part in runs. */
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
