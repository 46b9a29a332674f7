/** Converts the drawing to nodes and edges of React Flow and back. The drawing is the source of truth. */
import type { Edge, Node } from '@xyflow/react';
import type { DeviceSpec, LinkSpec } from '@/api/types';
import { deviceColor } from '@/theme/deviceColors';
import { DEVICE_SIZE, type Point, positionsOf, SWITCH_SIZE } from '@/cluster/autoLayout';
import { type Drawing, isLinkOff, linkName } from '@/cluster/drawing';

export type DeviceNode = Node<
  { device: DeviceSpec; color: string; isSource: boolean; off: boolean; problem: string },
  'device'
>;
export type SwitchNode = Node<{ name: string; off: boolean; problem: string }, 'switch'>;
export type ClusterNode = DeviceNode | SwitchNode;
export type LinkEdge = Edge<{ link: LinkSpec; off: boolean; problem: string }, 'link'>;

/** Problems by the name of their node or link. */
export type ProblemsByName = Readonly<Record<string, string>>;

export function toNodes(drawing: Drawing, problems: ProblemsByName = {}): ClusterNode[] {
  const { spec, layout } = drawing;
  const at = positionsOf(spec, layout);
  const common = (name: string) => ({ id: name, position: at[name] ?? { x: 0, y: 0 } });
  const facts = (name: string) => ({ off: layout.disabled.includes(name), problem: problems[name] ?? '' });
  return [
    ...spec.devices.map((device, rank): DeviceNode => ({
      ...common(device.name),
      type: 'device',
      initialWidth: DEVICE_SIZE.width,
      initialHeight: DEVICE_SIZE.height,
      data: {
        device,
        color: deviceColor(rank),
        isSource: device.name === spec.source,
        ...facts(device.name),
      },
    })),
    ...spec.switches.map(({ name }): SwitchNode => ({
      ...common(name),
      type: 'switch',
      initialWidth: SWITCH_SIZE.width,
      initialHeight: SWITCH_SIZE.height,
      data: { name, ...facts(name) },
    })),
  ];
}

export function toEdges(drawing: Drawing, problems: ProblemsByName = {}): LinkEdge[] {
  return drawing.spec.links.map((link) => ({
    id: linkName(link),
    source: link.a,
    target: link.b,
    type: 'link',
    data: { link, off: isLinkOff(link, drawing.layout), problem: problems[linkName(link)] ?? '' },
  }));
}

/** The drawing that these nodes and edges show; everything else comes from `base`. */
export function toDrawing(base: Drawing, nodes: readonly ClusterNode[], edges: readonly LinkEdge[]): Drawing {
  const positions: Record<string, Point> = Object.fromEntries(nodes.map((node) => [node.id, node.position]));
  return {
    spec: {
      ...base.spec,
      devices: nodes.flatMap((node) => (node.type === 'device' ? [node.data.device] : [])),
      switches: nodes.flatMap((node) => (node.type === 'switch' ? [{ name: node.data.name }] : [])),
      links: edges.flatMap((edge) => (edge.data ? [edge.data.link] : [])),
    },
    layout: { ...base.layout, positions },
  };
}

/** New nodes or edges with the selection and measured size of the old ones. */
export function keepingCanvasState<Item extends { id: string; selected?: boolean }>(
  fresh: readonly Item[],
  old: readonly Item[],
  selected: ReadonlySet<string>,
): Item[] {
  const before = new Map(old.map((item) => [item.id, item]));
  return fresh.map((item) => ({ ...before.get(item.id), ...item, selected: selected.has(item.id) }));
}
