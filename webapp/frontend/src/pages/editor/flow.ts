/** Converts the drawing to nodes and edges of React Flow. The drawing is the source of truth. */
import type { Edge, Node } from '@xyflow/react';
import type { DeviceSpec, LinkSpec } from '@/api/types';
import { deviceColor } from '@/theme/deviceColors';
import { DEVICE_SIZE, type Point, positionsOf, SWITCH_SIZE } from '@/cluster/autoLayout';
import { type Drawing, isLinkOff, linkName } from '@/cluster/drawing';
import { cardsIn, hiddenIn, middleOf, shownEnds } from '@/cluster/groups';
import { type Group, isWithin } from '@/cluster/nesting';
import { GROUP_SIZE, type Spot, spotsOf } from '@/cluster/labels';

export type DeviceNode = Node<
  { device: DeviceSpec; color: string; isSource: boolean; off: boolean; problem: string },
  'device'
>;
export type SwitchNode = Node<{ name: string; off: boolean; problem: string }, 'switch'>;
/** A collapsed group: one card for its nodes. */
export type CollapsedNode = Node<{ group: Group; problem: string }, 'collapsed'>;
/** The frame around the nodes of a group that is not collapsed. */
export type FrameNode = Node<{ group: Group }, 'frame'>;
export type ClusterNode = DeviceNode | SwitchNode | CollapsedNode | FrameNode;
export type LinkEdge = Edge<
  { link: LinkSpec; bends: readonly Point[]; spot: Spot; off: boolean; problem: string },
  'link'
>;

/** Problems by the name of their node or link. */
export type ProblemsByName = Readonly<Record<string, string>>;

const FRAME_ROOM = 26;
const TITLE_HEIGHT = 24;

export function toNodes(drawing: Drawing, problems: ProblemsByName = {}): ClusterNode[] {
  const { spec, layout } = drawing;
  const at = positionsOf(spec, layout);
  const hidden = hiddenIn(layout);
  const common = (name: string) => ({ id: name, position: at[name] ?? { x: 0, y: 0 } });
  const facts = (name: string) => ({ off: layout.disabled.includes(name), problem: problems[name] ?? '' });
  const nodes: ClusterNode[] = [
    ...spec.devices.map((device, rank): DeviceNode => ({
      ...common(device.name),
      type: 'device',
      ariaLabel: `Device ${device.name}`,
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
      ariaLabel: `Switch ${name}`,
      initialWidth: SWITCH_SIZE.width,
      initialHeight: SWITCH_SIZE.height,
      data: { name, ...facts(name) },
    })),
  ];
  const cards = cardsIn(layout).map(({ id, group }): CollapsedNode => ({
    id,
    type: 'collapsed',
    ariaLabel: `Group ${group.name}`,
    position: middleOf(drawing, group.members),
    initialWidth: GROUP_SIZE.width,
    initialHeight: GROUP_SIZE.height,
    data: { group, problem: group.members.flatMap((name) => problems[name] ?? []).join('\n') },
  }));
  return withFrames([...nodes.filter((node) => !hidden.has(node.id)), ...cards], layout.groups);
}

/** The nodes, with a frame around each group that is not collapsed where its nodes, cards and frames are now. */
export function withFrames(nodes: readonly ClusterNode[], groups: readonly Group[]): ClusterNode[] {
  const others = nodes.filter((node) => node.type !== 'frame');
  const frames: FrameNode[] = [];
  const smallestFirst = groups
    .map((group, index) => ({ group, index }))
    .toSorted((a, b) => a.group.members.length - b.group.members.length);
  for (const { group, index } of smallestFirst) {
    const inside = [...others, ...frames].filter((node) =>
      'group' in node.data ? isWithin(node.data.group, group.members) : group.members.includes(node.id),
    );
    if (!group.collapsed && inside.length > 0) frames.push(frameAround(inside, group, index));
  }
  return [...frames.toReversed(), ...others]; // an inner frame lies on the one around it
}

function frameAround(inside: readonly ClusterNode[], group: Group, index: number): FrameNode {
  const side = (axis: 'x' | 'y', sign: 1 | -1) =>
    inside.map((node) => {
      const { width, height } = sizeOf(node);
      return node.position[axis] + (sign * (axis === 'x' ? width : height)) / 2;
    });
  const [left, right] = [Math.min(...side('x', -1)) - FRAME_ROOM, Math.max(...side('x', 1)) + FRAME_ROOM];
  const top = Math.min(...side('y', -1)) - FRAME_ROOM - TITLE_HEIGHT;
  const bottom = Math.max(...side('y', 1)) + FRAME_ROOM;
  const size = { width: right - left, height: bottom - top };
  return {
    id: `frame:${index}`,
    type: 'frame',
    position: { x: (left + right) / 2, y: (top + bottom) / 2 },
    ...size,
    measured: size,
    zIndex: -1,
    draggable: false,
    selectable: false,
    focusable: false,
    data: { group },
  };
}

function sizeOf(node: ClusterNode): { width: number; height: number } {
  if (node.type === 'frame') return { width: node.width ?? 0, height: node.height ?? 0 };
  if (node.type === 'switch') return SWITCH_SIZE;
  return node.type === 'collapsed' ? GROUP_SIZE : DEVICE_SIZE;
}

export function toEdges(drawing: Drawing, problems: ProblemsByName = {}): LinkEdge[] {
  const hidden = hiddenIn(drawing.layout);
  const spots = spotsOf(drawing);
  return drawing.spec.links.flatMap((link): LinkEdge[] => {
    const name = linkName(link);
    const ends = shownEnds(link, hidden);
    const spot = spots.get(name);
    if (!ends || !spot) return [];
    return [
      {
        id: name,
        source: ends[0],
        target: ends[1],
        type: 'link',
        ariaLabel: `Link ${name}`,
        data: {
          link,
          spot,
          bends: drawing.layout.bends[name] ?? [],
          off: isLinkOff(link, drawing.layout),
          problem: problems[name] ?? '',
        },
      },
    ];
  });
}

/** New nodes or edges with the selection and measured size of the old ones. */
export function keepingCanvasState<Item extends { id: string; selected?: boolean }>(
  fresh: readonly Item[],
  old: readonly Item[],
  isSelected: (id: string) => boolean,
): Item[] {
  const before = new Map(old.map((item) => [item.id, item]));
  return fresh.map((item) => ({ ...before.get(item.id), ...item, selected: isSelected(item.id) }));
}
