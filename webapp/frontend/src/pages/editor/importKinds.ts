/** The formats that can be imported, and how to tell them apart. */

export type Kind = 'toml' | 'mn' | 'graphml' | 'gml';

export const KINDS: readonly { kind: Kind; label: string }[] = [
  { kind: 'toml', label: 'a cluster file (TOML)' },
  { kind: 'mn', label: 'a drawing of MiniEdit' },
  { kind: 'graphml', label: 'GraphML' },
  { kind: 'gml', label: 'GML' },
];

/** The format that the end of a file's name says. */
export function fileKindOf(name: string): Kind | null {
  return KINDS.find(({ kind }) => name.toLowerCase().endsWith(`.${kind}`))?.kind ?? null;
}

/** The format that a text looks like. */
export function textKindOf(text: string): Kind {
  const start = text.trimStart();
  if (start.startsWith('{')) return 'mn';
  if (start.startsWith('<')) return 'graphml';
  return /^(?:(?:#|Creator\s|Version\s).*\n\s*)*graph\s*\[/i.test(start) ? 'gml' : 'toml';
}
