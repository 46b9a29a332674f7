/** The selection as the canvas tells it: a collapsed group stands for its nodes. */
import type { EdgeChange, NodeChange } from '@xyflow/react';
import type { CanvasLayout, LinkSpec } from '@/api/types';
import { groupId } from '@/cluster/groups';
import { linkName } from '@/format/links';
import type { Selection } from './editorStore';

type Change = Pick<NodeChange | EdgeChange, 'type'> & { id?: string; selected?: boolean };

/** The selection after these changes; the same object if nothing changed, so that React draws nothing again. */
export function afterChanges(
  now: Selection,
  nodeChanges: readonly Change[],
  edgeChanges: readonly Change[],
  layout: CanvasLayout,
): Selection {
  const nodes = applied(now.nodes, nodeChanges, (id) => nodesOf(id, layout));
  const links = applied(now.links, edgeChanges, (id) => [id]);
  return nodes === now.nodes && links === now.links ? now : { nodes, links };
}

/** The selection with all parallel links of those in it: a box that is drawn finds only one of them. */
export function withParallels(selection: Selection, links: readonly LinkSpec[]): Selection {
  const ends = (link: LinkSpec) => [link.a, link.b].toSorted().join();
  const found = new Set(links.filter((link) => selection.links.includes(linkName(link))).map(ends));
  const missing = links
    .filter((link) => found.has(ends(link)))
    .map(linkName)
    .filter((name) => !selection.links.includes(name));
  return missing.length > 0 ? { ...selection, links: [...selection.links, ...missing] } : selection;
}

/** What is in one selection or the other. */
export function united(one: Selection, other: Selection): Selection {
  const both = (part: keyof Selection) => [...new Set([...one[part], ...other[part]])];
  return { nodes: both('nodes'), links: both('links') };
}

/** The nodes that an item of the canvas stands for. */
export function nodesOf(id: string, layout: CanvasLayout): readonly string[] {
  const index = layout.groups.findIndex((_, at) => groupId(at) === id);
  return layout.groups[index]?.members ?? [id];
}

/** Whether an item of the canvas is selected: of a collapsed group, all of its nodes. */
export function isShownSelected(selection: Selection, layout: CanvasLayout): (id: string) => boolean {
  const selected = new Set([...selection.nodes, ...selection.links]);
  return (id) => nodesOf(id, layout).every((name) => selected.has(name));
}

function applied(
  names: readonly string[],
  changes: readonly Change[],
  standsFor: (id: string) => readonly string[],
): readonly string[] {
  let next = names;
  for (const { type, id, selected } of changes) {
    if (type !== 'select' || id === undefined) continue;
    const own = standsFor(id);
    if (selected && !own.every((name) => next.includes(name)))
      next = [...next, ...own.filter((name) => !next.includes(name))];
    if (!selected && own.some((name) => next.includes(name)))
      next = next.filter((name) => !own.includes(name));
  }
  return next;
}
