/** The formats that can be imported, and how to tell them apart. */
import { FILE_FORMATS, type FileFormat } from '@/cluster/fileFormats';

export type Kind = FileFormat | 'mn' | 'graphml' | 'gml';

export const KINDS: readonly { kind: Kind; label: string; ends: readonly string[] }[] = [
  ...FILE_FORMATS.map(({ form, title, ends }) => ({ kind: form, label: `a cluster file (${title})`, ends })),
  { kind: 'mn', label: 'a drawing of MiniEdit', ends: ['.mn'] },
  { kind: 'graphml', label: 'GraphML', ends: ['.graphml'] },
  { kind: 'gml', label: 'GML', ends: ['.gml'] },
];

/** Whether it says everything about devices and links, so that no preset and no rate need to be chosen. */
export const isComplete = (kind: Kind): boolean => FILE_FORMATS.some(({ form }) => form === kind);

/** The format that the end of a file's name says. */
export function fileKindOf(name: string): Kind | null {
  const lower = name.toLowerCase();
  return KINDS.find(({ ends }) => ends.some((end) => lower.endsWith(end)))?.kind ?? null;
}

/** The format that a text looks like. */
export function textKindOf(text: string): Kind {
  const start = text.trimStart();
  // MiniEdit writes JSON, with these keys; a cluster file has none of them.
  if (start.startsWith('{')) return /"(?:hosts|controllers|application)"\s*:/.test(start) ? 'mn' : 'json';
  if (start.startsWith('<')) return 'graphml';
  if (/^(?:(?:#|Creator\s|Version\s).*\n\s*)*graph\s*\[/i.test(start)) return 'gml';
  const first = start.split('\n').find((line) => line.trim() && !line.startsWith('#')) ?? '';
  return /^(?:---|%YAML\b|["']?[\w-]+["']?\s*:(?:\s|$))/.test(first) ? 'yaml' : 'toml';
}
