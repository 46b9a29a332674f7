/** Parts of a drawing, to be copied into this or another one. */
import { linkName } from '@/format/links';
import { type Point, positionsOf } from './autoLayout';
import { type Drawing, freeName, nodeNames, remove, withSpec } from './drawing';

/** The named nodes with their places and the links among them. */
export function excerpt(drawing: Drawing, names: readonly string[]): Drawing {
  const others = nodeNames(drawing.spec).filter((name) => !names.includes(name));
  const { spec, layout } = drawing;
  return remove({ spec, layout: { ...layout, positions: positionsOf(spec, layout) } }, others, []);
}

/** Adds `piece` under free names, moved by `by`; also returns the names that its nodes got. */
export function paste(drawing: Drawing, piece: Drawing, by: Point): { drawing: Drawing; names: string[] } {
  const names = new Map<string, string>();
  for (const name of nodeNames(piece.spec)) {
    const taken = [...nodeNames(drawing.spec), ...names.values()];
    names.set(name, taken.includes(name) ? freeName(taken, name.replace(/-\d+$/, '').slice(0, 27)) : name);
  }
  const called = (name: string) => names.get(name) ?? name;
  const moved = ({ x, y }: Point) => ({ x: x + by.x, y: y + by.y });
  const { spec, layout } = drawing;
  const devices = piece.spec.devices.map((device) => ({ ...device, name: called(device.name) }));
  const links = piece.spec.links.map((link) => ({ ...link, a: called(link.a), b: called(link.b) }));
  const renamed = new Map(
    piece.spec.links.map((link, index) => [linkName(link), linkName(links[index] ?? link)]),
  );
  const grown = withSpec(drawing, {
    source: spec.source || (devices[0]?.name ?? ''),
    devices: [...spec.devices, ...devices],
    switches: [...spec.switches, ...piece.spec.switches.map((node) => ({ name: called(node.name) }))],
    links: [...spec.links, ...links],
  });
  const places = Object.entries(piece.layout.positions).map(([name, at]) => [called(name), moved(at)]);
  const bends = Object.entries(piece.layout.bends).map(([name, points]) => [
    renamed.get(name) ?? name,
    points.map(moved),
  ]);
  return {
    drawing: {
      ...grown,
      layout: {
        positions: { ...positionsOf(spec, layout), ...Object.fromEntries(places) },
        disabled: [
          ...layout.disabled,
          ...piece.layout.disabled.map((name) => renamed.get(name) ?? called(name)),
        ],
        bends: { ...layout.bends, ...Object.fromEntries(bends) },
        groups: [
          ...layout.groups,
          ...piece.layout.groups.map((group) => ({ ...group, members: group.members.map(called) })),
        ],
      },
    },
    names: [...names.values()],
  };
}
