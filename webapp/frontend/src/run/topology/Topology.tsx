import '@xyflow/react/dist/style.css';
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import {
  Background,
  Controls,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type NodeOrigin,
  type NodeTypes,
} from '@xyflow/react';
import { useEffect, useMemo } from 'react';
import type { ClusterSpec } from '@/api/types';
import type { Spot } from '@/cluster/labels';
import { deviceColor } from '@/theme/deviceColors';
import type { DeviceView, LinkView } from '@/run/data/snapshot';
import { LinkEdge, type LinkEdgeType } from './LinkEdge';
import { DeviceNode, SwitchNode, type DeviceNodeType, type SwitchNodeType } from './nodes';
import { fitted, positionsOf, spotsIn, type Positions } from './positions';
import classes from './topology.module.css';

const nodeTypes: NodeTypes = { device: DeviceNode, switch: SwitchNode };
const edgeTypes = { link: LinkEdge };

export type Selection = { kind: 'link' | 'device'; name: string } | null;

interface Props {
  cluster: ClusterSpec;
  drawn: Positions | undefined;
  devices: DeviceView[];
  links: LinkView[];
  selection: Selection;
  onSelect: (selection: Selection) => void;
}

/** Text of cards has 13 px: at this zoom it is not smaller than 11. A cluster that does not fit can be dragged. */
const FIT = { padding: 0.06, minZoom: 0.85, maxZoom: 1.15 };
/** Positions are those of middles, as in the editor. */
const ORIGIN: NodeOrigin = [0.5, 0.5];
/** Where the label of a link without a spot is. */
const MIDDLE: Spot = { lane: 0, along: 0.5, aside: 0 };
/** Pixels of the canvas that stay free around the cards. */
const EDGE = 44;

/** The cluster as it was drawn, with the present state of devices and links; read-only. */
export function Topology(props: Props) {
  return (
    <ReactFlowProvider>
      <Graph {...props} />
    </ReactFlowProvider>
  );
}

function Graph({ cluster, drawn, devices, links, selection, onSelect }: Props) {
  const scheme = useComputedColorScheme('light');
  const { ref, width, height } = useElementSize();
  const positions = useMemo(() => {
    const room = { width: (width - EDGE) / FIT.minZoom, height: (height - EDGE) / FIT.minZoom };
    const given = positionsOf(cluster, drawn);
    return width > 0 ? fitted(cluster, given, room) : given;
  }, [cluster, drawn, width, height]);
  const spots = useMemo(() => spotsIn(cluster, positions), [cluster, positions]);
  const { fitView } = useReactFlow();
  useEffect(() => {
    if (width > 0 && height > 0 && positions) void fitView(FIT);
  }, [fitView, positions, width, height]);
  const nodes = useMemo(
    (): (DeviceNodeType | SwitchNodeType)[] => [
      ...devices.map((view, rank): DeviceNodeType => ({
        id: view.name,
        type: 'device',
        position: positions[view.name] ?? { x: 0, y: 0 },
        data: {
          view,
          color: deviceColor(rank),
          isSource: view.name === cluster.source,
          selected: selection?.kind === 'device' && selection.name === view.name,
        },
      })),
      ...cluster.switches.map(({ name }): SwitchNodeType => ({
        id: name,
        type: 'switch',
        position: positions[name] ?? { x: 0, y: 0 },
        data: { name },
      })),
    ],
    [cluster, devices, positions, selection],
  );
  const edges = useMemo(
    () =>
      links.map((view): LinkEdgeType => ({
        id: view.name,
        source: view.a,
        target: view.b,
        type: 'link',
        data: {
          view,
          spot: spots.get(view.name) ?? MIDDLE,
          selected: selection?.kind === 'link' && selection.name === view.name,
          onSelect: (name) => onSelect({ kind: 'link', name }),
        },
      })),
    [links, spots, selection, onSelect],
  );
  return (
    <div ref={ref} className={classes.canvas} data-testid="topology">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        colorMode={scheme}
        nodeOrigin={ORIGIN}
        fitView
        fitViewOptions={FIT}
        minZoom={0.2}
        maxZoom={2}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={false}
        zoomOnScroll={false}
        preventScrolling={false}
        onNodeClick={(_, node) => node.type === 'device' && onSelect({ kind: 'device', name: node.id })}
        onPaneClick={() => onSelect(null)}
      >
        <Background gap={22} size={1} color="var(--loom-line)" />
        <Controls showInteractive={false} orientation="horizontal" position="top-right" />
      </ReactFlow>
    </div>
  );
}
