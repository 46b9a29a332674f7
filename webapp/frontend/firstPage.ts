/** How much a browser loads before the first page is there. */
/** Bytes of scripts and styles on the wire, each file compressed by itself. */
export const MOST_BYTES = 150_000;

/** The scripts and styles that a built page names: with `base` removed, their paths in the built folder. */
export function firstFiles(html: string, base: string): string[] {
  const named = [...html.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)].map(([, path]) => path!);
  if (named.length === 0)
    throw new Error('index.html: the built page names no script; vite.config.ts measures them.');
  return named.map((path) => path.slice(base.length));
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
