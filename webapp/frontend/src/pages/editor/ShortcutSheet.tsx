import { Kbd, Modal, Text } from '@mantine/core';
import { COMMANDS } from './commands';
import { shownKey } from './shortcutKeys';
import classes from './editor.module.css';
import { useEditor } from './editorStore';

const SECTIONS = ['Draw', 'Select', 'Edit', 'Arrange', 'View'] as const;

/** What keys and the mouse do that is no command of its own. */
const MORE: Readonly<Record<string, readonly (readonly [string, readonly string[]])[]>> = {
  Draw: [
    ['Pull a link from a dot at a border', ['drag']],
    ['Bend a link', ['double click']],
  ],
  Select: [
    ['Go to the next node or link, select it', ['Tab', 'Enter']],
    ['Add to the selection', ['Shift+Enter', 'Shift+click']],
    ['Select what is in a box', ['Shift+drag']],
  ],
  Arrange: [
    ['Move the selected nodes by 8', ['←', '↑', '→', '↓']],
    ['Move them by 40', ['Shift+←']],
  ],
  View: [['Menu of what is selected', ['Menu key', 'Shift+F10', 'right click']]],
};

/** All shortcuts of the editor, as the commands have them. */
export function ShortcutSheet({ opened, onClose }: { opened: boolean; onClose: () => void }) {
  const readOnly = useEditor((state) => state.readOnly);
  return (
    <Modal opened={opened} onClose={onClose} title="Shortcuts of the editor" size="xl">
      <div className={classes.sheet} data-testid="shortcuts">
        {SECTIONS.map((section) => (
          <section key={section}>
            <h3 className="overline">{section}</h3>
            {COMMANDS.filter(
              (command) =>
                command.section === section && command.keys.length > 0 && !(command.writes && readOnly),
            ).map(({ id, label, keys }) => (
              <Row key={id} label={label} keys={keys.map(shownKey)} />
            ))}
            {(MORE[section] ?? []).map(([label, keys]) => (
              <Row key={label} label={label} keys={keys} />
            ))}
          </section>
        ))}
      </div>
      <Text size="xs" c="dimmed" mt="md">
        Aligning, equal gaps and the source are in the menu of what is selected, and in the panel on the
        right.
      </Text>
    </Modal>
  );
}

function Row({ label, keys }: { label: string; keys: readonly string[] }) {
  return (
    <div className={classes.shortcut}>
      <span>{label}</span>
      <span>
        {keys.map((key) => (
          <Kbd key={key} size="xs" ml={4}>
            {key}
          </Kbd>
        ))}
      </span>
    </div>
  );
}
