import { notifications } from '@mantine/notifications';
import { useReactFlow } from '@xyflow/react';
import { connect, linkName, nodeNames, whyNotConnect } from '@/cluster/drawing';
import { hiddenIn } from '@/cluster/groups';
import { positionsOf } from '@/cluster/autoLayout';
import { editor, useDrawing, useEditor } from './editorStore';
import { type Choice, NodePicker } from './NodePicker';
import { ShortcutSheet } from './ShortcutSheet';

/** The dialogs that keys open: which node to link to, which to find, and all shortcuts. */
export function Questions() {
  const { spec } = useDrawing();
  const question = useEditor((state) => state.question);
  const selected = useEditor((state) => state.selection.nodes);
  const flow = useReactFlow();
  const close = () => editor().ask(null);
  const choices: Choice[] = [
    ...spec.devices.map(({ name, title, role }) => ({
      name,
      about: title || (role === 'terminal' ? 'Terminal' : 'Device'),
    })),
    ...spec.switches.map(({ name }) => ({ name, about: 'Switch' })),
  ];
  const from = selected.length === 1 ? selected[0] : `${selected.length} nodes`;
  const find = (name: string) => {
    const { select, history } = editor();
    select({ nodes: [name], links: [] });
    const at = positionsOf(history.present.spec, history.present.layout)[name];
    if (at) void flow.setCenter(at.x, at.y, { zoom: Math.max(0.8, flow.getZoom()), duration: 200 });
    const id = hiddenIn(history.present.layout).get(name) ?? name;
    document.querySelector<HTMLElement>(`.react-flow__node[data-id="${id}"]`)?.focus();
  };
  return (
    <>
      <NodePicker
        opened={question === 'link'}
        title={`Link ${from} to`}
        hint="links"
        choices={choices.filter(({ name }) => selected.length > 1 || !selected.includes(name))}
        onPick={linkTo}
        onClose={close}
      />
      <NodePicker
        opened={question === 'search'}
        title="Find a node"
        hint="selects and shows it"
        choices={choices}
        onPick={find}
        onClose={close}
      />
      <ShortcutSheet opened={question === 'help'} onClose={close} />
    </>
  );
}

/** Links every selected node to this one, as one step, and selects the new links. */
function linkTo(target: string) {
  const { selection, edit, select, history } = editor();
  const sources = selection.nodes.filter(
    (name) => nodeNames(history.present.spec).includes(name) && name !== target,
  );
  const reason = sources.map((name) => whyNotConnect(history.present.spec, name, target)).find(Boolean);
  if (reason) notifications.show({ color: 'orange', message: reason });
  const before = history.present.spec.links.length;
  edit((old) => sources.reduce((drawing, name) => connect(drawing, name, target), old));
  const made = editor().history.present.spec.links.slice(before).map(linkName);
  if (made.length) select({ nodes: [], links: made });
}
