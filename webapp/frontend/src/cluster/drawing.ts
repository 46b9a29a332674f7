/** A cluster as it is drawn, and every edit of it as a pure function. Nodes are named, links are `a--b`. */
import type { ClusterSpec, DevicePreset, DeviceSpec, CanvasLayout, LinkSpec } from '@/api/types';
import type { Point } from './autoLayout';

export interface Drawing {
  spec: ClusterSpec;
  layout: CanvasLayout;
}

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
};

export function emptyDrawing(name: string): Drawing {
  return {
    spec: { name, title: '', description: '', source: '', devices: [], switches: [], links: [] },
    layout: { positions: {}, disabled: [] },
  };
}

export const linkName = (link: { a: string; b: string }) => `${link.a}--${link.b}`;

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
  if (spec.links.some((link) => sameEnds(link, a, b)))
    return `${a} and ${b} are already linked: edit that link.`;
  return null;
}

/** Adds a link with the values of the newest link: a star of slow links needs its rate only once. */
export function connect(drawing: Drawing, a: string, b: string): Drawing {
  if (whyNotConnect(drawing.spec, a, b)) return drawing;
  const last = drawing.spec.links.at(-1);
  const link = { ...(last ?? NEW_LINK), reverse_bit_per_s: null, a, b };
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
      positions: Object.fromEntries(Object.entries(layout.positions).filter(([name]) => !gone.has(name))),
      disabled: layout.disabled.filter((name) => names.has(name)),
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

export function move(drawing: Drawing, positions: Readonly<Record<string, Point>>): Drawing {
  return {
    ...drawing,
    layout: { ...drawing.layout, positions: { ...drawing.layout.positions, ...positions } },
  };
}

/** Switches nodes or links off or on. What is off stays in the drawing but takes no part in runs. */
export function setDisabled(drawing: Drawing, names: readonly string[], off: boolean): Drawing {
  const rest = drawing.layout.disabled.filter((name) => !names.includes(name));
  return { ...drawing, layout: { ...drawing.layout, disabled: off ? [...rest, ...names] : rest } };
}

/** Whether a link is off: itself, or one of its ends. */
export function isLinkOff(link: LinkSpec, layout: CanvasLayout): boolean {
  return [linkName(link), `${link.b}--${link.a}`, link.a, link.b].some((name) =>
    layout.disabled.includes(name),
  );
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

/** The named nodes and the links among them, for copying. */
export function excerpt(drawing: Drawing, names: readonly string[]): Drawing {
  const others = nodeNames(drawing.spec).filter((name) => !names.includes(name));
  return remove(drawing, others, []);
}

/** Adds `piece` under free names, moved by `by`; also returns the names that its nodes got. */
export function paste(drawing: Drawing, piece: Drawing, by: Point): { drawing: Drawing; names: string[] } {
  const names = new Map<string, string>();
  for (const name of nodeNames(piece.spec)) {
    const taken = [...nodeNames(drawing.spec), ...names.values()];
    names.set(name, taken.includes(name) ? freeName(taken, name.replace(/-\d+$/, '').slice(0, 27)) : name);
  }
  const called = (name: string) => names.get(name) ?? name;
  const { spec } = drawing;
  const positions = Object.entries(piece.layout.positions).map(([name, at]) => [
    called(name),
    { x: at.x + by.x, y: at.y + by.y },
  ]);
  const devices = piece.spec.devices.map((device) => ({ ...device, name: called(device.name) }));
  const grown = withSpec(drawing, {
    source: spec.source || (devices[0]?.name ?? ''),
    devices: [...spec.devices, ...devices],
    switches: [...spec.switches, ...piece.spec.switches.map((node) => ({ name: called(node.name) }))],
    links: [
      ...spec.links,
      ...piece.spec.links.map((link) => ({ ...link, a: called(link.a), b: called(link.b) })),
    ],
  });
  return { drawing: move(grown, Object.fromEntries(positions)), names: [...names.values()] };
}

function placed(drawing: Drawing, name: string, at: Point): Drawing {
  return move(drawing, { [name]: { x: Math.round(at.x), y: Math.round(at.y) } });
}

function sameEnds(link: LinkSpec, a: string, b: string): boolean {
  return (link.a === a && link.b === b) || (link.a === b && link.b === a);
}
