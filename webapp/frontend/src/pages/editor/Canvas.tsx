import '@xyflow/react/dist/style.css';
import { useComputedColorScheme } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import {
  applyEdgeChanges,
  applyNodeChanges,
  Background,
  BackgroundVariant,
  type Connection,
  ConnectionLineType,
  ConnectionMode,
  Controls,
  type EdgeChange,
  MiniMap,
  type NodeChange,
  ReactFlow,
  SelectionMode,
  useReactFlow,
  useStore,
} from '@xyflow/react';
import { type DragEvent, type MouseEvent, useEffect, useState } from 'react';
import { useCatalogue } from '@/api/queries';
import type { Point } from '@/cluster/autoLayout';
import { type Add, addAround } from '@/cluster/additions';
import {
  addDevice,
  addSwitch,
  connect,
  linkName,
  move,
  moveBy,
  nodeNames,
  whyNotConnect,
} from '@/cluster/drawing';
import { groupId, middleOf } from '@/cluster/groups';
import { addBend } from '@/cluster/linkEdits';
import { afterChanges, isShownSelected } from './canvasSelection';
import { CollapsedCard } from './CollapsedCard';
import { DeviceCard } from './DeviceCard';
import { editor, useDrawing, useEditor } from './editorStore';
import {
  type ClusterNode,
  keepingCanvasState,
  type LinkEdge,
  type ProblemsByName,
  toEdges,
  toNodes,
  withFrames,
} from './flow';
import { GroupFrame } from './GroupFrame';
import { LinkLine } from './LinkLine';
import { PALETTE_TYPE, SWITCH_ITEM } from './Palette';
import { SwitchCard } from './SwitchCard';
import { useBoxSelection } from './useBoxSelection';

const nodeTypes = { device: DeviceCard, switch: SwitchCard, collapsed: CollapsedCard, frame: GroupFrame };
const edgeTypes = { link: LinkLine };
const CENTRE: [number, number] = [0.5, 0.5];
/** At a smaller zoom labels and figures could not be read: only names are shown, larger. */
const FAR = 0.4;
/** The most nodes of which everything is seen without a map. */
const FEW = 12;
const GRID: [number, number] = [8, 8];
const MIDDLE_AND_RIGHT_BUTTON = [1, 2];

/** The canvas of the editor: drag, connect and select nodes. Every edit goes through the store. */
export function Canvas({ problems, readOnly }: { problems: ProblemsByName; readOnly: boolean }) {
  const drawing = useDrawing();
  const selection = useEditor((state) => state.selection);
  const boxSelects = useEditor((state) => state.boxSelects);
  const { edit, select } = editor();
  const box = useBoxSelection();
  const presets = useCatalogue().data?.presets;
  const flow = useReactFlow<ClusterNode, LinkEdge>();
  const scheme = useComputedColorScheme('light');
  const [nodes, setNodes] = useState<ClusterNode[]>([]);
  const [edges, setEdges] = useState<LinkEdge[]>([]);
  const isFar = useStore((state) => state.transform[2] < FAR);
  const [connecting, setConnecting] = useState(false);
  // Do not fit an empty canvas: its first device would move away from the pointer.
  const [fitAtFirst] = useState(() => nodeNames(drawing.spec).length > 0);

  useEffect(() => {
    const isSelected = isShownSelected(editor().selection, drawing.layout);
    setNodes((old) => keepingCanvasState(toNodes(drawing, problems), old, isSelected));
    setEdges((old) => keepingCanvasState(toEdges(drawing, problems), old, isSelected));
  }, [drawing, problems]);
  useEffect(() => {
    const isSelected = isShownSelected(selection, editor().history.present.layout);
    setNodes((old) => reselected(old, isSelected));
    setEdges((old) => reselected(old, isSelected));
  }, [selection]);

  const selectFromCanvas = (nodeChanges: NodeChange<ClusterNode>[], edgeChanges: EdgeChange<LinkEdge>[]) => {
    const now = editor().selection;
    const next = afterChanges(now, nodeChanges, edgeChanges, editor().history.present.layout);
    if (next !== now) select(next);
  };
  const onNodesChange = (changes: NodeChange<ClusterNode>[]) => {
    selectFromCanvas(changes, []);
    const others = changes.filter((change) => change.type !== 'select');
    if (others.length === 0) return;
    const groups = editor().history.present.layout.groups;
    const moves = groups.length > 0 && others.some((change) => change.type === 'position');
    setNodes((old) => {
      const next = applyNodeChanges(others, old);
      return moves ? withFrames(next, groups) : next;
    });
  };
  const onEdgesChange = (changes: EdgeChange<LinkEdge>[]) => {
    selectFromCanvas([], changes);
    const others = changes.filter((change) => change.type !== 'select');
    if (others.length > 0) setEdges((old) => applyEdgeChanges(others, old));
  };

  const onConnect = ({ source, target }: Connection) => {
    const reason =
      source.includes(':') || target.includes(':')
        ? 'Expand the group first: a link ends at one of its nodes.'
        : whyNotConnect(drawing.spec, source, target);
    if (reason) {
      notifications.show({ color: 'orange', message: reason });
      return;
    }
    edit((old) => connect(old, source, target));
    const made = editor().history.present.spec.links.at(-1);
    if (made) select({ nodes: [], links: [linkName(made)] });
  };

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    const [count, item] = event.dataTransfer.getData(PALETTE_TYPE).split(' ', 2);
    const preset = presets?.find((candidate) => candidate.name === item);
    if (!preset && item !== SWITCH_ITEM) return;
    const add: Add = preset ? (old, spot) => addDevice(old, preset, spot) : addSwitch;
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const first = add(drawing, at);
    const more = addAround(first.drawing, at, Number(count) - 1, add);
    edit(() => more.drawing);
    select({ nodes: [first.name, ...more.names], links: [] });
  };

  const onBend = (event: MouseEvent, edge: LinkEdge) => {
    if (readOnly) return;
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    edit((old) => addBend(old, edge.id, at));
    select({ nodes: [], links: [edge.id] });
  };

  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      nodeOrigin={CENTRE}
      colorMode={scheme}
      className={[connecting && 'connecting', isFar && 'far'].filter(Boolean).join(' ')}
      data-testid="canvas"
      onNodesChange={onNodesChange}
      onEdgesChange={onEdgesChange}
      onConnect={onConnect}
      onConnectStart={() => setConnecting(true)}
      onConnectEnd={() => setConnecting(false)}
      onNodeDragStop={(_event, _node, dragged) => edit((old) => dropped(old, dragged))}
      onSelectionDragStop={(_event, dragged) => edit((old) => dropped(old, dragged))}
      onEdgeDoubleClick={onBend}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
      nodesDraggable={!readOnly}
      nodesConnectable={!readOnly}
      deleteKeyCode={null}
      disableKeyboardA11y
      multiSelectionKeyCode={['Shift', 'Control', 'Meta']}
      selectionKeyCode={['Shift', 'Control+Shift', 'Meta+Shift']}
      {...box}
      selectionOnDrag={boxSelects}
      selectionMode={SelectionMode.Partial}
      panOnDrag={boxSelects ? MIDDLE_AND_RIGHT_BUTTON : true}
      zoomOnDoubleClick={false}
      connectionMode={ConnectionMode.Loose}
      connectionLineType={ConnectionLineType.Straight}
      connectionRadius={32}
      snapToGrid
      snapGrid={GRID}
      minZoom={0.15}
      maxZoom={2}
      fitView={fitAtFirst}
      fitViewOptions={{ maxZoom: 1, padding: 0.2 }}
    >
      <Background
        variant={BackgroundVariant.Dots}
        gap={24}
        size={1.4}
        color="var(--loom-line)"
        bgColor="var(--loom-page)"
      />
      <Controls showInteractive={false} position="bottom-left" />
      {nodes.length > FEW && (
        <MiniMap
          pannable
          zoomable
          position="bottom-right"
          style={{ width: 150, height: 96 }}
          nodeBorderRadius={12}
          nodeColor={(node) =>
            node.type === 'frame'
              ? 'transparent'
              : 'color' in node.data
                ? String(node.data.color)
                : 'var(--loom-wire)'
          }
        />
      )}
    </ReactFlow>
  );
}

/** The items with this selection; those whose selection stays are the same objects. */
function reselected<Item extends { id: string; selected?: boolean }>(
  items: Item[],
  isSelected: (id: string) => boolean,
): Item[] {
  return items.map((item) => {
    const selected = isSelected(item.id);
    return (item.selected ?? false) === selected ? item : { ...item, selected };
  });
}

/** The drawing after nodes were dropped where they are now; a collapsed group takes its nodes with it. */
function dropped(
  drawing: ReturnType<typeof editor>['history']['present'],
  dragged: readonly { id: string; position: Point }[],
) {
  const { groups } = drawing.layout;
  const single = dragged.filter((node) => !node.id.includes(':'));
  let next = single.length
    ? move(drawing, Object.fromEntries(single.map((node) => [node.id, node.position])))
    : drawing;
  groups.forEach(({ members }, index) => {
    const card = dragged.find((node) => node.id === groupId(index));
    if (!card) return;
    const from = middleOf(drawing, members);
    next = moveBy(next, members, { x: card.position.x - from.x, y: card.position.y - from.y });
  });
  return next;
}
