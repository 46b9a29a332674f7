/** How much a browser loads before the first page is there. */
import type { Manifest } from 'vite';

/** Bytes of scripts and styles on the wire, each file compressed by itself. */
export const MOST_BYTES = 150_000;

/** The files that come with the entry: its script, all that it imports at once, and their styles. */
export function firstFiles(manifest: Manifest): string[] {
  const found = new Set<string>();
  const visit = (key: string) => {
    const chunk = manifest[key]!;
    if (found.has(chunk.file)) return;
    found.add(chunk.file);
    for (const style of chunk.css ?? []) found.add(style);
    for (const next of chunk.imports ?? []) visit(next);
  };
  for (const [key, { isEntry }] of Object.entries(manifest)) if (isEntry) visit(key);
  return [...found];
}

/** What is wrong if the files are too large together; '' if they are not. */
export function complaint(bytes: ReadonlyMap<string, number>): string {
  const sum = [...bytes.values()].reduce((total, one) => total + one, 0);
  if (sum <= MOST_BYTES) return '';
  const largest = [...bytes].toSorted(([, one], [, other]) => other - one).slice(0, 5);
  return (
    `The first page loads ${kilobytes(sum)} of scripts and styles, at most ${kilobytes(MOST_BYTES)} are allowed: ` +
    'import() what is not needed before it is shown. The largest files: ' +
    `${largest.map(([name, size]) => `${name} ${kilobytes(size)}`).join(', ')}.`
  );
}

const kilobytes = (bytes: number) => `${(bytes / 1000).toFixed(1)} kB`;
