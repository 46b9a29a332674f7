import '@xyflow/react/dist/style.css';
import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import {
  Background,
  Controls,
  ReactFlow,
  ReactFlowProvider,
  useReactFlow,
  type FitViewOptions,
  type NodeOrigin,
  type NodeTypes,
} from '@xyflow/react';
import { useEffect, useMemo } from 'react';
import type { ClusterSpec } from '@/api/types';
import type { Spot } from '@/cluster/labels';
import type { Point } from '@/cluster/point';
import { deviceColor } from '@/theme/deviceColors';
import type { DeviceView, LinkView } from '@/run/data/snapshot';
import { LinkEdge, type LinkEdgeType } from './LinkEdge';
import { DeviceNode, SwitchNode, type DeviceNodeType, type SwitchNodeType } from './nodes';
import { arranged, arrangement, drawingOf, type Drawn } from './positions';
import classes from './topology.module.css';

const nodeTypes: NodeTypes = { device: DeviceNode, switch: SwitchNode };
const edgeTypes = { link: LinkEdge };

/** `focused`: the keyboard's focus moves to its controls. */
export type Selection = { kind: 'link' | 'device'; name: string; focused?: boolean } | null;

interface Props {
  cluster: ClusterSpec;
  drawn: Drawn | undefined;
  devices: DeviceView[];
  links: LinkView[];
  /** Whether it shows a state that is not known to last: nothing moves. */
  still: boolean;
  selection: Selection;
  onSelect: (selection: Selection) => void;
}

/** Text of cards and tiles has 13 px: at this zoom it is not smaller than 11. What does not fit can be dragged. */
const FIT = { minZoom: 0.85, maxZoom: 1.15 };
const VIEW = {
  ...FIT,
  padding: { left: '14px', right: '46px', top: '12px', bottom: '12px' },
} satisfies FitViewOptions;
/** Positions are those of middles, as in the editor. */
const ORIGIN: NodeOrigin = [0.5, 0.5];
/** Where the label of a link without a spot is. */
const MIDDLE: Spot = { lane: 0, along: 0.5, aside: 0 };
const NO_BENDS: readonly Point[] = [];
/** Pixels of the canvas that stay free around the cards; at the right are the buttons. */
const EDGE = { left: 14, right: 46, y: 12 };

/** The cluster as it was drawn, with the present state of devices and links; read-only. */
export function Topology(props: Props) {
  return (
    <ReactFlowProvider>
      <Graph {...props} />
    </ReactFlowProvider>
  );
}

function Graph({ cluster, drawn, devices, links, still, selection, onSelect }: Props) {
  const scheme = useComputedColorScheme('light');
  const { ref, width, height } = useElementSize();
  const { positions, bends, spots, cards } = useMemo(() => {
    const given = drawingOf(cluster, drawn);
    if (width === 0) return arrangement(cluster, given, 'full');
    return arranged(cluster, given, {
      width: (width - EDGE.left - EDGE.right) / FIT.minZoom,
      height: (height - 2 * EDGE.y) / FIT.minZoom,
    });
  }, [cluster, drawn, width, height]);
  const { fitView } = useReactFlow();
  useEffect(() => {
    if (width > 0 && height > 0 && positions) void fitView(VIEW);
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
          cards,
          selected: selection?.kind === 'device' && selection.name === view.name,
        },
      })),
      ...cluster.switches.map(({ name }): SwitchNodeType => ({
        id: name,
        type: 'switch',
        position: positions[name] ?? { x: 0, y: 0 },
        data: { name, cards },
      })),
    ],
    [cluster, devices, positions, cards, selection],
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
          bends: bends[view.name] ?? NO_BENDS,
          cards,
          selected: selection?.kind === 'link' && selection.name === view.name,
          onSelect: (name) => onSelect({ kind: 'link', name }),
        },
      })),
    [links, spots, bends, cards, selection, onSelect],
  );
  return (
    <div ref={ref} className={classes.canvas} data-still={still || undefined} data-testid="topology">
      <ReactFlow
        nodes={nodes}
        edges={edges}
        nodeTypes={nodeTypes}
        edgeTypes={edgeTypes}
        colorMode={scheme}
        nodeOrigin={ORIGIN}
        fitView
        fitViewOptions={VIEW}
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
        <Controls showInteractive={false} position="top-right" />
      </ReactFlow>
    </div>
  );
}
