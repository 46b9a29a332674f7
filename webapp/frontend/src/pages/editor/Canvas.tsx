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
  useReactFlow,
} from '@xyflow/react';
import { type DragEvent, useCallback, useEffect, useState } from 'react';
import { useCatalogue } from '@/api/queries';
import { DeviceCard } from './DeviceCard';
import { addDevice, addSwitch, connect, linkName, move, nodeNames, whyNotConnect } from '@/cluster/drawing';
import { editor, useDrawing, useEditor } from './editorStore';
import {
  type ClusterNode,
  keepingCanvasState,
  type LinkEdge,
  type ProblemsByName,
  toEdges,
  toNodes,
} from './flow';
import { LinkLine } from './LinkLine';
import { PALETTE_TYPE, SWITCH_ITEM } from './Palette';
import { SwitchCard } from './SwitchCard';

const nodeTypes = { device: DeviceCard, switch: SwitchCard };
const edgeTypes = { link: LinkLine };
const CENTRE: [number, number] = [0.5, 0.5];
const GRID: [number, number] = [8, 8];

/** The canvas of the editor: drag, connect and select nodes. Every edit goes through the store. */
export function Canvas({ problems, readOnly }: { problems: ProblemsByName; readOnly: boolean }) {
  const drawing = useDrawing();
  const selection = useEditor((state) => state.selection);
  const { edit, select } = editor();
  const presets = useCatalogue().data?.presets;
  const flow = useReactFlow<ClusterNode, LinkEdge>();
  const scheme = useComputedColorScheme('light');
  const [nodes, setNodes] = useState<ClusterNode[]>([]);
  const [edges, setEdges] = useState<LinkEdge[]>([]);
  const [connecting, setConnecting] = useState(false);
  // Do not fit an empty canvas: its first device would move away from the pointer.
  const [fitAtFirst] = useState(() => nodeNames(drawing.spec).length > 0);

  useEffect(() => {
    const selected = new Set([...selection.nodes, ...selection.links]);
    setNodes((old) => keepingCanvasState(toNodes(drawing, problems), old, selected));
    setEdges((old) => keepingCanvasState(toEdges(drawing, problems), old, selected));
  }, [drawing, problems, selection]);

  const selectFromCanvas = useCallback(
    (nodeChanges: NodeChange<ClusterNode>[], edgeChanges: EdgeChange<LinkEdge>[]) => {
      const now = editor().selection;
      const next = {
        nodes: applySelection(now.nodes, nodeChanges),
        links: applySelection(now.links, edgeChanges),
      };
      if (next.nodes !== now.nodes || next.links !== now.links) select(next);
    },
    [select],
  );
  const onNodesChange = (changes: NodeChange<ClusterNode>[]) => {
    selectFromCanvas(changes, []);
    setNodes((old) =>
      applyNodeChanges(
        changes.filter((change) => change.type !== 'select'),
        old,
      ),
    );
  };
  const onEdgesChange = (changes: EdgeChange<LinkEdge>[]) => {
    selectFromCanvas([], changes);
    setEdges((old) =>
      applyEdgeChanges(
        changes.filter((change) => change.type !== 'select'),
        old,
      ),
    );
  };

  const onConnect = ({ source, target }: Connection) => {
    const reason = whyNotConnect(drawing.spec, source, target);
    if (reason) {
      notifications.show({ color: 'orange', message: reason });
      return;
    }
    edit((old) => connect(old, source, target));
    select({ nodes: [], links: [linkName({ a: source, b: target })] });
  };

  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    const item = event.dataTransfer.getData(PALETTE_TYPE);
    const at = flow.screenToFlowPosition({ x: event.clientX, y: event.clientY });
    const preset = presets?.find((candidate) => candidate.name === item);
    if (!preset && item !== SWITCH_ITEM) return;
    const added = preset ? addDevice(drawing, preset, at) : addSwitch(drawing, at);
    edit(() => added.drawing);
    select({ nodes: [added.name], links: [] });
  };

  return (
    <ReactFlow
      nodes={nodes}
      edges={edges}
      nodeTypes={nodeTypes}
      edgeTypes={edgeTypes}
      nodeOrigin={CENTRE}
      colorMode={scheme}
      className={connecting ? 'connecting' : undefined}
      data-testid="canvas"
      onNodesChange={onNodesChange}
      onEdgesChange={onEdgesChange}
      onConnect={onConnect}
      onConnectStart={() => setConnecting(true)}
      onConnectEnd={() => setConnecting(false)}
      onNodeDragStop={(_event, _node, dragged) =>
        edit((old) => move(old, Object.fromEntries(dragged.map((node) => [node.id, node.position]))))
      }
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
      nodesDraggable={!readOnly}
      nodesConnectable={!readOnly}
      deleteKeyCode={null}
      multiSelectionKeyCode={['Shift', 'Control', 'Meta']}
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
      <MiniMap
        pannable
        zoomable
        position="bottom-right"
        style={{ width: 150, height: 96 }}
        nodeBorderRadius={12}
        nodeColor={(node) => ('color' in node.data ? String(node.data.color) : 'var(--loom-wire)')}
      />
    </ReactFlow>
  );
}

/** The same list if the selection did not change, so that React draws nothing again. */
function applySelection(
  names: readonly string[],
  changes: readonly (NodeChange<ClusterNode> | EdgeChange<LinkEdge>)[],
) {
  let next = names;
  for (const change of changes) {
    if (change.type !== 'select') continue;
    if (change.selected && !next.includes(change.id)) next = [...next, change.id];
    if (!change.selected && next.includes(change.id)) next = next.filter((name) => name !== change.id);
  }
  return next;
}
