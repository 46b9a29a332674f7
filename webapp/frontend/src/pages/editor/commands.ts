/** Everything that the editor does on a key or from its menus: shortcuts, context menu and help derive from it. */
import type { ClusterSpec } from '@/api/types';
import { align, type Axis, distribute, type Edge } from '@/cluster/alignment';
import { autoLayout, type Point } from '@/cluster/autoLayout';
import { type Drawing, linkName, move, setDisabled, withSpec } from '@/cluster/drawing';
import { canGroup, chosenIn, group, groupsOf, setCollapsed, ungroup } from '@/cluster/groups';
import { straighten } from '@/cluster/linkEdits';
import type { Selection } from './editorStore';
import { editor } from './editorStore';

/** What commands need from the page. */
export interface View {
  save: () => void;
  /** Shows everything, or these places. */
  fit: (places?: readonly Point[]) => void;
  /** Copies or pastes through the browser's clipboard. */
  clipboard: (action: 'copy' | 'cut' | 'paste') => void;
}

export interface Command {
  id: string;
  label: string;
  section: 'Draw' | 'Select' | 'Edit' | 'Arrange' | 'View';
  /** The first is shown. `mod` is Ctrl, or the command key of a Mac. */
  keys: readonly string[];
  /** Whether it changes the drawing: people who may only look do not have it. */
  writes: boolean;
  /** The browser itself turns these keys into an event, which the page listens to. */
  native?: boolean;
  able: (selection: Selection, drawing: Drawing) => boolean;
  run: (view: View) => void;
}

const always = () => true;
const anything = ({ nodes, links }: Selection) => nodes.length + links.length > 0;
const nodes =
  (least: number) =>
  ({ nodes: chosen }: Selection) =>
    chosen.length >= least;

/** The links that end at one of these nodes, by name. */
const linksAt = (spec: ClusterSpec, names: readonly string[]): string[] =>
  spec.links.filter(({ a, b }) => names.includes(a) || names.includes(b)).map(linkName);

const edit = (change: (drawing: Drawing, selection: Selection) => Drawing) => () => {
  const { selection } = editor();
  editor().edit((drawing) => change(drawing, selection));
};

const aligned = (id: Edge, label: string): Command => ({
  id: `align-${id}`,
  label,
  section: 'Arrange',
  keys: [],
  writes: true,
  able: nodes(2),
  run: edit((drawing, selection) => align(drawing, selection.nodes, id)),
});

const distributed = (axis: Axis, label: string): Command => ({
  id: `distribute-${axis}`,
  label,
  section: 'Arrange',
  keys: [],
  writes: true,
  able: nodes(3),
  run: edit((drawing, selection) => distribute(drawing, selection.nodes, axis)),
});

export const COMMANDS: readonly Command[] = [
  {
    id: 'add',
    label: 'Find a device to add',
    section: 'Draw',
    keys: ['a'],
    writes: true,
    able: always,
    run: () => document.querySelector<HTMLElement>('[data-testid="palette-filter"]')?.focus(),
  },
  {
    id: 'link',
    label: 'Link the selected nodes to…',
    section: 'Draw',
    keys: ['l'],
    writes: true,
    able: nodes(1),
    run: () => editor().ask('link'),
  },
  {
    id: 'toggle',
    label: 'Switch off or on',
    section: 'Draw',
    keys: ['o'],
    writes: true,
    able: anything,
    run: edit((drawing, { nodes: chosen, links }) => {
      const names = [...chosen, ...links];
      return setDisabled(drawing, names, !names.some((name) => drawing.layout.disabled.includes(name)));
    }),
  },
  {
    id: 'isolate',
    label: 'Isolate: switch all links there off or on',
    section: 'Draw',
    keys: ['i'],
    writes: true,
    able: ({ nodes: chosen }, { spec }) => linksAt(spec, chosen).length > 0,
    run: edit((drawing, { nodes: chosen }) => {
      const names = linksAt(drawing.spec, chosen);
      return setDisabled(drawing, names, !names.every((name) => drawing.layout.disabled.includes(name)));
    }),
  },
  {
    id: 'source',
    label: 'Let it hold the prompt',
    section: 'Draw',
    keys: [],
    writes: true,
    able: ({ nodes: [name, other], links }, { spec }) =>
      other === undefined &&
      links.length === 0 &&
      spec.source !== name &&
      spec.devices.some((device) => device.name === name),
    run: edit((drawing, { nodes: [name] }) => (name ? withSpec(drawing, { source: name }) : drawing)),
  },
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
  aligned('left', 'Align left'),
  aligned('centre', 'Align centres'),
  aligned('right', 'Align right'),
  aligned('top', 'Align tops'),
  aligned('middle', 'Align middles'),
  aligned('bottom', 'Align bottoms'),
  distributed('x', 'Equal gaps, left to right'),
  distributed('y', 'Equal gaps, top to bottom'),
  {
    id: 'group',
    label: 'Group',
    section: 'Arrange',
    keys: ['g'],
    writes: true,
    able: ({ nodes: chosen }, { layout }) => canGroup(layout, chosen),
    run: edit((drawing, selection) => group(drawing, selection.nodes)),
  },
  {
    id: 'ungroup',
    label: 'Dissolve the group',
    section: 'Arrange',
    keys: ['shift+g'],
    writes: true,
    able: ({ nodes: chosen }, { layout }) => groupsOf(layout, chosen).length > 0,
    run: edit((drawing, selection) => ungroup(drawing, selection.nodes)),
  },
  {
    id: 'collapse',
    label: 'Collapse or expand the group',
    section: 'Arrange',
    keys: ['c'],
    writes: true,
    able: ({ nodes: chosen }, { layout }) => groupsOf(layout, chosen).length > 0,
    run: edit((drawing, { nodes: chosen }) => {
      const open = chosenIn(drawing.layout, chosen).some((each) => !each.collapsed);
      return setCollapsed(drawing, chosen, open);
    }),
  },
  {
    id: 'straighten',
    label: 'Remove all bends',
    section: 'Arrange',
    keys: [],
    writes: true,
    able: ({ links }, { layout }) => links.some((name) => layout.bends[name]),
    run: edit((drawing, selection) => straighten(drawing, selection.links)),
  },
  {
    id: 'tidy',
    label: 'Tidy up',
    section: 'Arrange',
    keys: ['t'],
    writes: true,
    able: (_, { spec }) => spec.devices.length > 0,
    run: (view) => {
      const places = autoLayout(editor().history.present.spec);
      editor().edit((drawing) => move(straighten(drawing, Object.keys(drawing.layout.bends)), places));
      view.fit(Object.values(places));
    },
  },
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

type Key = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'shiftKey' | 'altKey'>;

/** The command of a pressed key; those of the browser's own events are left to it. */
export function commandFor(event: Key): Command | undefined {
  return COMMANDS.find((command) => !command.native && command.keys.some((key) => isPressed(key, event)));
}

function isPressed(key: string, event: Key): boolean {
  const parts = key.split('+');
  const name = parts.at(-1) ?? '';
  // A sign such as ? needs the shift key on many keyboards: only letters and named keys tell it apart.
  const isSign = name.length === 1 && !/[a-z]/.test(name);
  return (
    event.key.toLowerCase() === name &&
    (event.ctrlKey || event.metaKey) === parts.includes('mod') &&
    (isSign || event.shiftKey === parts.includes('shift')) &&
    !event.altKey
  );
}

const SHOWN: Readonly<Record<string, string>> = { mod: 'Ctrl', shift: 'Shift', escape: 'Esc', delete: 'Del' };

/** `mod+shift+z` → `Ctrl+Shift+Z`. */
export const shownKey = (key: string) =>
  key
    .split('+')
    .map((part) => SHOWN[part] ?? part.charAt(0).toUpperCase() + part.slice(1))
    .join('+');
