import { Menu } from '@mantine/core';
import { type MouseEvent, type ReactNode, useRef, useState } from 'react';
import { nodesOf } from './canvasSelection';
import type { Command, View } from './command';
import { COMMANDS, commandOf, isAble } from './commands';
import { shownKey } from './shortcutKeys';
import classes from './editor.module.css';
import { editor, useEditor } from './editorStore';

const MENU = { item: { padding: '5px 10px', fontSize: 13 } };
const ON_ITEMS = ['link', 'toggle', 'isolate', 'source', 'copy', 'cut', 'duplicate', 'delete'];
const ON_CANVAS = ['add', 'paste', 'select-all', 'search', 'tidy', 'fit', 'help'];

/**
 * The canvas with a menu of what can be done with the node or link under the pointer, or, by the menu key, with the
 * focused one or the selection.
 */
export function ContextMenu({ view, children }: { view: View; children: ReactNode }) {
  const readOnly = useEditor((state) => state.readOnly);
  const [at, setAt] = useState<{ x: number; y: number } | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const open = (event: MouseEvent) => {
    if (!(event.target instanceof Element) || event.target.closest('[role="menu"], input, textarea')) return;
    event.preventDefault();
    const item = event.target.closest('[data-id]');
    const id = item?.getAttribute('data-id');
    if (id && !id.startsWith('frame:')) selectUnder(id, !item?.closest('.react-flow__node'));
    const byKey = event.button !== 2;
    const place = (byKey ? (item ?? box.current) : null)?.getBoundingClientRect();
    setAt(
      place
        ? { x: place.left + Math.min(place.width / 2, 200), y: place.top + Math.min(place.height / 2, 200) }
        : { x: event.clientX, y: event.clientY },
    );
  };
  const { nodes, links } = useEditor((state) => state.selection);
  const some = nodes.length + links.length > 0;
  const able = (command: Command) => isAble(command, readOnly);
  const parts = some
    ? [
        ON_ITEMS.map(commandOf),
        COMMANDS.filter((command) => command.section === 'Arrange' && command.id !== 'tidy'),
      ]
    : [ON_CANVAS.map(commandOf)];
  const shown = parts.map((part) => part.filter(able)).filter((part) => part.length > 0);
  return (
    <div ref={box} onContextMenu={open} className={classes.canvas}>
      {children}
      <Menu
        opened={at !== null}
        onClose={() => setAt(null)}
        position="bottom-start"
        width={260}
        returnFocus
        styles={MENU}
      >
        <Menu.Target>
          <div
            role="button"
            tabIndex={-1}
            aria-label="What can be done here"
            style={{ position: 'fixed', left: at?.x ?? 0, top: at?.y ?? 0, width: 1, height: 1 }}
          />
        </Menu.Target>
        <Menu.Dropdown data-testid="context-menu" mah="70vh" style={{ overflowY: 'auto' }}>
          {shown.map((part, index) => (
            <div key={part[0]?.id}>
              {index > 0 && <Menu.Divider />}
              {part.map((command) => (
                <Menu.Item
                  key={command.id}
                  onClick={() => command.run(view)}
                  rightSection={
                    command.keys[0] && <kbd className={classes.key}>{shownKey(command.keys[0])}</kbd>
                  }
                  color={command.id === 'delete' ? 'red' : undefined}
                  data-testid={`do-${command.id}`}
                >
                  {command.label}
                </Menu.Item>
              ))}
            </div>
          ))}
        </Menu.Dropdown>
      </Menu>
    </div>
  );
}

/** Selects the item under the pointer, unless it is selected already. */
function selectUnder(id: string, isLink: boolean) {
  const { selection, select, history } = editor();
  const names = isLink ? [id] : nodesOf(id, history.present.layout);
  const now = isLink ? selection.links : selection.nodes;
  if (!names.every((name) => now.includes(name)))
    select(isLink ? { nodes: [], links: names } : { nodes: names, links: [] });
}
