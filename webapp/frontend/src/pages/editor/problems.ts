/** Finds the node or link and the field that a problem from the server is about. */
import type { ClusterSpec, Problem } from '@/api/types';
import { linkName, nodeNames } from '@/cluster/drawing';

export interface PlacedProblem {
  message: string;
  /** Name of the node or link; empty if it is about the cluster. */
  item: string;
  /** Last part of the path (`bit_per_s`), to mark the field in the panel. */
  field: string;
}

const INDEXED = /\b(devices|switches|links)\[(\d+)\]/;

export function place(problem: Problem, spec: ClusterSpec): PlacedProblem {
  const indexed = INDEXED.exec(problem.path) ?? INDEXED.exec(problem.message);
  const item =
    (indexed && itemAt(spec, indexed[1] ?? '', Number(indexed[2]))) || itemNamed(spec, problem.message);
  const field = /\.(\w+)$/.exec(problem.path)?.[1] ?? '';
  return { message: readable(problem, item), item, field };
}

function itemAt(spec: ClusterSpec, list: string, index: number): string {
  if (list === 'links') {
    const link = spec.links[index];
    return link ? linkName(link) : '';
  }
  return (list === 'devices' ? spec.devices : spec.switches)[index]?.name ?? '';
}

/** The first node that the message mentions: messages start with their subject. */
function itemNamed(spec: ClusterSpec, message: string): string {
  const names = new Set(nodeNames(spec));
  return message.split(/[\s:,]+/).find((word) => names.has(word)) ?? '';
}

/** `links[2] ends at x` → `link a--b ends at x`: names instead of list indices. */
function readable({ path, message }: Problem, item: string): string {
  const text = message.replace(INDEXED, item || '$&');
  if (item && text.includes(item)) return text;
  const field = /\.(\w+)$/.exec(path)?.[1];
  const where = [item, field?.replaceAll('_', ' ')].filter(Boolean).join(', ');
  return where ? `${where}: ${lowerFirst(text)}` : text;
}

const lowerFirst = (text: string) => text.charAt(0).toLowerCase() + text.slice(1);

/** All problems of one item as one text, by the item's name. */
export function byItem(problems: readonly PlacedProblem[]): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const { item, message } of problems) {
    if (item) texts[item] = texts[item] ? `${texts[item]}\n${message}` : message;
  }
  return texts;
}
