/** Everything that the editor does on a key or from its menus: shortcuts, context menu and help derive from it. */
import { ARRANGE_COMMANDS } from './arrangeCommands';
import { always, anything, type Command, nodes } from './command';
import { DRAW_COMMANDS } from './drawCommands';
import { editor } from './editorStore';

export const COMMANDS: readonly Command[] = [
  ...DRAW_COMMANDS,
  {
    id: 'select-all',
    label: 'Select all nodes and links',
    section: 'Select',
    keys: ['mod+a'],
    writes: false,
    able: always,
    run: () => editor().selectAll(),
  },
  {
    id: 'clear',
    label: 'Select nothing',
    section: 'Select',
    keys: ['escape'],
    writes: false,
    able: always,
    run: () => editor().select({ nodes: [], links: [] }),
  },
  {
    id: 'search',
    label: 'Find a node',
    section: 'Select',
    keys: ['/', 'mod+f'],
    writes: false,
    able: always,
    run: () => editor().ask('search'),
  },
  {
    id: 'box',
    label: 'Select by dragging, or move the view',
    section: 'Select',
    keys: ['b'],
    writes: false,
    able: always,
    run: () => editor().toggleBox(),
  },
  {
    id: 'copy',
    label: 'Copy',
    section: 'Edit',
    keys: ['mod+c'],
    writes: false,
    native: true,
    able: nodes(1),
    run: (view) => view.clipboard('copy'),
  },
  {
    id: 'cut',
    label: 'Cut',
    section: 'Edit',
    keys: ['mod+x'],
    writes: true,
    native: true,
    able: nodes(1),
    run: (view) => view.clipboard('cut'),
  },
  {
    id: 'paste',
    label: 'Paste, also from another cluster',
    section: 'Edit',
    keys: ['mod+v'],
    writes: true,
    native: true,
    able: always,
    run: (view) => view.clipboard('paste'),
  },
  {
    id: 'duplicate',
    label: 'Duplicate',
    section: 'Edit',
    keys: ['mod+d'],
    writes: true,
    able: nodes(1),
    run: () => editor().duplicate(),
  },
  {
    id: 'delete',
    label: 'Delete',
    section: 'Edit',
    keys: ['delete', 'backspace'],
    writes: true,
    able: anything,
    run: () => editor().removeSelected(),
  },
  {
    id: 'undo',
    label: 'Undo',
    section: 'Edit',
    keys: ['mod+z'],
    writes: true,
    able: always,
    run: () => editor().undo(),
  },
  {
    id: 'redo',
    label: 'Redo',
    section: 'Edit',
    keys: ['mod+shift+z', 'mod+y'],
    writes: true,
    able: always,
    run: () => editor().redo(),
  },
  {
    id: 'save',
    label: 'Save',
    section: 'Edit',
    keys: ['mod+s'],
    writes: true,
    able: always,
    run: (view) => view.save(),
  },
  ...ARRANGE_COMMANDS,
  {
    id: 'fit',
    label: 'Show everything',
    section: 'View',
    keys: ['f'],
    writes: false,
    able: always,
    run: (view) => view.fit(),
  },
  {
    id: 'help',
    label: 'All shortcuts',
    section: 'View',
    keys: ['?'],
    writes: false,
    able: always,
    run: () => editor().ask('help'),
  },
];

/** The command of that name. */
export function commandOf(id: string): Command {
  const found = COMMANDS.find((command) => command.id === id);
  if (!found) throw new Error(`There is no command ${id}.`);
  return found;
}

/** What a person may do now. */
export function isAble(command: Command, readOnly: boolean): boolean {
  const { selection, history } = editor();
  return !(command.writes && readOnly) && command.able(selection, history.present);
}
