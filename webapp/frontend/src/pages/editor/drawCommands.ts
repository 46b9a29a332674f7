/** Commands that add, join and switch off what is drawn. */
import type { ClusterSpec } from '@/api/types';
import { type Drawing, linkName, setDisabled, withSpec } from '@/cluster/drawing';
import { always, anything, type Command, edit, nodes } from './command';
import { editor, type Selection } from './editorStore';

/** The links that end at one of these nodes, by name. */
const linksAt = (spec: ClusterSpec, names: readonly string[]): string[] =>
  spec.links.filter(({ a, b }) => names.includes(a) || names.includes(b)).map(linkName);

/** Switches these parts off, or on again if `isOff` says so of what is off now. */
const switched = (
  partsOf: (drawing: Drawing, selection: Selection) => readonly string[],
  isOff: (names: readonly string[], disabled: readonly string[]) => boolean,
) =>
  edit((drawing, selection) => {
    const names = partsOf(drawing, selection);
    return setDisabled(drawing, names, !isOff(names, drawing.layout.disabled));
  });

export const DRAW_COMMANDS: readonly Command[] = [
  {
    id: 'add',
    label: 'Find a device or switch to add',
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
    run: switched(
      (_, { nodes: chosen, links }) => [...chosen, ...links],
      (names, disabled) => names.some((name) => disabled.includes(name)),
    ),
  },
  {
    id: 'isolate',
    label: 'Isolate: switch all links there off or on',
    section: 'Draw',
    keys: ['i'],
    writes: true,
    able: ({ nodes: chosen }, { spec }) => linksAt(spec, chosen).length > 0,
    run: switched(
      ({ spec }, { nodes: chosen }) => linksAt(spec, chosen),
      (names, disabled) => names.every((name) => disabled.includes(name)),
    ),
  },
  {
    id: 'source',
    label: 'Make it the source, which holds the prompt',
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
];
