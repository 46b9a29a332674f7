/** Commands that place nodes and links, and group them. */
import { align, distribute } from '@/cluster/alignment';
import { autoLayout } from '@/cluster/autoLayout';
import { type Drawing, move } from '@/cluster/drawing';
import { canGroup, chosenIn, group, groupsOf, setCollapsed, ungroup } from '@/cluster/groups';
import { straighten } from '@/cluster/linkEdits';
import { type Command, edit, nodes } from './command';
import { editor } from './editorStore';

/** Places the selected nodes, of which there are two or, for equal gaps, three at least. */
const placed = (
  id: string,
  label: string,
  least: number,
  place: (drawing: Drawing, names: readonly string[]) => Drawing,
): Command => ({
  id,
  label,
  section: 'Arrange',
  keys: [],
  writes: true,
  able: nodes(least),
  run: edit((drawing, selection) => place(drawing, selection.nodes)),
});

const EDGES = {
  left: 'Align left',
  centre: 'Align centres',
  right: 'Align right',
  top: 'Align tops',
  middle: 'Align middles',
  bottom: 'Align bottoms',
} as const;
const AXES = { x: 'Equal gaps, left to right', y: 'Equal gaps, top to bottom' } as const;
const entries = <Key extends string>(labels: Record<Key, string>) =>
  Object.entries(labels) as [Key, string][];

export const ARRANGE_COMMANDS: readonly Command[] = [
  ...entries(EDGES).map(([edge, label]) =>
    placed(`align-${edge}`, label, 2, (drawing, names) => align(drawing, names, edge)),
  ),
  ...entries(AXES).map(([axis, label]) =>
    placed(`distribute-${axis}`, label, 3, (drawing, names) => distribute(drawing, names, axis)),
  ),
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
];
