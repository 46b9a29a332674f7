/** A cluster as it is drawn, and every edit of it as a pure function. Nodes are named, links are `a--b`. */
import type { ClusterSpec, DevicePreset, DeviceSpec, CanvasLayout, LinkSpec } from '@/api/types';
import { linkName, linkNames } from '@/format/links';
import { type Point, positionsOf } from './autoLayout';
import { distinct } from './nesting';

export { linkName };

export interface Drawing {
  spec: ClusterSpec;
  layout: CanvasLayout;
}

const MAX_PARALLEL = 99;

export const NAME_PATTERN = /^[a-z][a-z0-9_-]{0,30}$/;

/** Values of the first link of a cluster: wired Fast Ethernet. */
export const NEW_LINK: Omit<LinkSpec, 'a' | 'b'> = {
  bit_per_s: 100e6,
  reverse_bit_per_s: null,
  delay_s: 0.2e-3,
  jitter_s: 0,
  loss_frac: 0,
  reverse_delay_s: null,
  reverse_loss_frac: null,
  j_per_byte: 0,
  parallel: 1,
};

export const NO_LAYOUT: CanvasLayout = { positions: {}, disabled: [], bends: {}, groups: [] };

export function emptyDrawing(name: string): Drawing {
  return {
    spec: { name, title: '', description: '', source: '', devices: [], switches: [], links: [] },
    layout: NO_LAYOUT,
  };
}

export function nodeNames(spec: ClusterSpec): string[] {
  return [...spec.devices, ...spec.switches].map((node) => node.name);
}

/** `base-1`, `base-2`, …: the first that is free. */
export function freeName(taken: Iterable<string>, base: string): string {
  const names = new Set(taken);
  let number = 1;
  while (names.has(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}

export function addDevice(
  drawing: Drawing,
  preset: DevicePreset,
  at: Point,
): { drawing: Drawing; name: string } {
  const { spec } = drawing;
  const name = freeName(nodeNames(spec), preset.role === 'terminal' ? 'terminal' : 'device');
  const device: DeviceSpec = { ...preset, name, role: preset.role ?? 'worker' };
  const source = spec.source || name;
  return {
    drawing: placed(withSpec(drawing, { devices: [...spec.devices, device], source }), name, at),
    name,
  };
}

export function addSwitch(drawing: Drawing, at: Point): { drawing: Drawing; name: string } {
  const name = freeName(nodeNames(drawing.spec), 'switch');
  return {
    drawing: placed(withSpec(drawing, { switches: [...drawing.spec.switches, { name }] }), name, at),
    name,
  };
}

/** The reason why these two nodes cannot be linked; null if they can. */
export function whyNotConnect(spec: ClusterSpec, a: string, b: string): string | null {
  if (a === b) return `A link needs two different ends: ${a} cannot be linked to itself.`;
  if (freeNumber(spec, a, b) > MAX_PARALLEL)
    return `${a} and ${b} have ${MAX_PARALLEL} links already: remove one.`;
  return null;
}

/** The first free number of a link between these two nodes. */
function freeNumber(spec: ClusterSpec, a: string, b: string): number {
  const taken = new Set(between(spec.links, a, b).map((link) => link.parallel));
  let number = 1;
  while (taken.has(number)) number += 1;
  return number;
}

/** All links between these two nodes, whichever end is named first. */
export function between(links: readonly LinkSpec[], a: string, b: string): LinkSpec[] {
  return links.filter((link) => (link.a === a && link.b === b) || (link.a === b && link.b === a));
}

/**
 * Adds a link with the values of the newest link: a star of slow links needs its rate only once. It is the last of
 * the links, and a second one between these nodes is a parallel link.
 */
export function connect(drawing: Drawing, a: string, b: string): Drawing {
  if (whyNotConnect(drawing.spec, a, b)) return drawing;
  const last = drawing.spec.links.at(-1);
  const symmetric = { reverse_bit_per_s: null, reverse_delay_s: null, reverse_loss_frac: null };
  const link = { ...(last ?? NEW_LINK), ...symmetric, a, b, parallel: freeNumber(drawing.spec, a, b) };
  return withSpec(drawing, { links: [...drawing.spec.links, link] });
}

/** Removes these nodes with their links, and these links. */
export function remove(drawing: Drawing, nodes: readonly string[], links: readonly string[]): Drawing {
  const gone = new Set(nodes);
  const { spec, layout } = drawing;
  const devices = spec.devices.filter((device) => !gone.has(device.name));
  const kept = spec.links.filter(
    (link) => !gone.has(link.a) && !gone.has(link.b) && !links.includes(linkName(link)),
  );
  if (gone.size === 0 && kept.length === spec.links.length) return drawing;
  const source = gone.has(spec.source) ? (devices[0]?.name ?? '') : spec.source;
  const switches = spec.switches.filter((node) => !gone.has(node.name));
  const names = new Set([...devices, ...switches].map((node) => node.name).concat(kept.map(linkName)));
  return {
    spec: { ...spec, source, devices, switches, links: kept },
    layout: {
      positions: only(layout.positions, (name) => !gone.has(name)),
      disabled: layout.disabled.filter((name) => names.has(name)),
      bends: only(layout.bends, (name) => names.has(name)),
      groups: distinct(
        layout.groups.map((group) => ({
          ...group,
          members: group.members.filter((name) => !gone.has(name)),
        })),
      ),
    },
  };
}

/** The reason why a node cannot have this name; null if it can. */
export function whyNotRename(spec: ClusterSpec, from: string, to: string): string | null {
  if (!NAME_PATTERN.test(to))
    return 'Use up to 31 lower-case letters, digits, - and _, starting with a letter.';
  return to !== from && nodeNames(spec).includes(to) ? `There is already a node called ${to}.` : null;
}

/** Renames a node everywhere: in links, as source, in the layout. */
export function rename(drawing: Drawing, from: string, to: string): Drawing {
  if (from === to || whyNotRename(drawing.spec, from, to)) return drawing;
  const name = (old: string) => (old === from ? to : old);
  const named = <Node extends { name: string }>(node: Node) => ({ ...node, name: name(node.name) });
  const { spec, layout } = drawing;
  const links = spec.links.map((link) => ({ ...link, a: name(link.a), b: name(link.b) }));
  const renamed = new Map(spec.links.map((link, index) => [linkName(link), linkName(links[index] ?? link)]));
  return {
    spec: {
      ...spec,
      source: name(spec.source),
      links,
      devices: spec.devices.map(named),
      switches: spec.switches.map(named),
    },
    layout: {
      positions: Object.fromEntries(Object.entries(layout.positions).map(([key, at]) => [name(key), at])),
      disabled: layout.disabled.map((key) => renamed.get(key) ?? name(key)),
      bends: Object.fromEntries(
        Object.entries(layout.bends).map(([key, points]) => [renamed.get(key) ?? key, points]),
      ),
      groups: layout.groups.map((group) => ({ ...group, members: group.members.map(name) })),
    },
  };
}

export function updateDevices(
  drawing: Drawing,
  names: readonly string[],
  patch: Partial<DeviceSpec>,
): Drawing {
  const change = (device: DeviceSpec) => (names.includes(device.name) ? { ...device, ...patch } : device);
  return withSpec(drawing, { devices: drawing.spec.devices.map(change) });
}

export function updateLinks(drawing: Drawing, names: readonly string[], patch: Partial<LinkSpec>): Drawing {
  const change = (link: LinkSpec) => (names.includes(linkName(link)) ? { ...link, ...patch } : link);
  return withSpec(drawing, { links: drawing.spec.links.map(change) });
}

export function withSpec(drawing: Drawing, patch: Partial<ClusterSpec>): Drawing {
  return { ...drawing, spec: { ...drawing.spec, ...patch } };
}

/**
 * Places these nodes. Nodes that were placed automatically so far keep where they are drawn, and the bends of a link
 * move along if both of its ends move by the same.
 */
export function move(drawing: Drawing, positions: Readonly<Record<string, Point>>): Drawing {
  const { spec, layout } = drawing;
  const before = positionsOf(spec, layout);
  const by = (name: string): Point => {
    const [from, to] = [before[name], positions[name]];
    return from && to ? { x: to.x - from.x, y: to.y - from.y } : { x: 0, y: 0 };
  };
  const bends = { ...layout.bends };
  for (const link of spec.links) {
    const points = bends[linkName(link)];
    const [a, b] = [by(link.a), by(link.b)];
    if (points && a.x === b.x && a.y === b.y)
      bends[linkName(link)] = points.map(({ x, y }) => ({ x: x + a.x, y: y + a.y }));
  }
  return { ...drawing, layout: { ...layout, bends, positions: { ...before, ...positions } } };
}

/** Moves these nodes by the same way. */
export function moveBy(drawing: Drawing, names: readonly string[], by: Point): Drawing {
  const at = positionsOf(drawing.spec, drawing.layout);
  const moved = names.flatMap((name) => {
    const from = at[name];
    return from ? [[name, { x: from.x + by.x, y: from.y + by.y }] as const] : [];
  });
  return moved.length ? move(drawing, Object.fromEntries(moved)) : drawing;
}

/** Switches nodes or links off or on. What is off stays in the drawing but takes no part in runs. */
export function setDisabled(drawing: Drawing, names: readonly string[], off: boolean): Drawing {
  const rest = drawing.layout.disabled.filter((name) => !names.includes(name));
  return { ...drawing, layout: { ...drawing.layout, disabled: off ? [...rest, ...names] : rest } };
}

/** Whether a link is off: itself, or one of its ends. */
export function isLinkOff(link: LinkSpec, layout: CanvasLayout): boolean {
  return [...linkNames(link), link.a, link.b].some((name) => layout.disabled.includes(name));
}

/** The cluster without what is switched off; null while nothing is left that could compute. */
export function activeSpec({ spec, layout }: Drawing): ClusterSpec | null {
  const on = ({ name }: { name: string }) => !layout.disabled.includes(name);
  const devices = spec.devices.filter(on);
  if (!devices.some((device) => device.role === 'worker')) return null;
  return {
    ...spec,
    devices,
    switches: spec.switches.filter(on),
    links: spec.links.filter((link) => !isLinkOff(link, layout)),
  };
}

function placed(drawing: Drawing, name: string, at: Point): Drawing {
  return move(drawing, { [name]: { x: Math.round(at.x), y: Math.round(at.y) } });
}

function only<T>(record: Record<string, T>, keep: (name: string) => boolean): Record<string, T> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => keep(name)));
}
