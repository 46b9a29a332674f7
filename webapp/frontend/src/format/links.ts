/** What links are called: `a--b` as commands and reports do, `a – b` for people. */

/** Of a link from a to b: a→b is forward. */
type Way = 'both' | 'forward' | 'backward';

export interface Ends {
  a: string;
  b: string;
  /** Its number among the links between the same two nodes; absent in recordings of older versions. */
  parallel?: number;
}

/** `a--b`; the second link between these nodes is `a--b--2`. */
export const linkName = ({ a, b, parallel = 1 }: Ends): string =>
  parallel === 1 ? `${a}--${b}` : `${a}--${b}--${parallel}`;

/** Its name, and its name with the ends exchanged: commands take both. */
export const linkNames = (link: Ends): readonly [string, string] => [
  linkName(link),
  linkName({ ...link, a: link.b, b: link.a }),
];

/** `a – b`, `a – b (2)`. */
export const linkTitle = ({ a, b, parallel = 1 }: Ends): string =>
  parallel === 1 ? `${a} – ${b}` : `${a} – ${b} (${parallel})`;

/** Links to choose from: called as commands do, shown as people do. */
export const linkChoices = (links: readonly Ends[]): { value: string; label: string }[] =>
  links.map((link) => ({ value: linkName(link), label: linkTitle(link) }));

/** `a–b` within a sentence, `a → b` for one direction; of the second link between these nodes `a → b (2)`. */
export function linkWords({ a, b, parallel = 1 }: Ends, way: Way = 'both'): string {
  const ends = { both: `${a}–${b}`, forward: `${a} → ${b}`, backward: `${b} → ${a}` }[way];
  return parallel === 1 ? ends : `${ends} (${parallel})`;
}

/** `linkWords` of the link that has this name: of `a--b--2` forward `a → b (2)`. */
export function namedWords(name: string, way: Way = 'both'): string {
  const ends = endsOf(name);
  return ends ? linkWords(ends, way) : name;
}

/** What a link's name says; null if it is no name of a link. */
export function endsOf(name: string): Ends | null {
  const found = /^(.+?)--(.+?)(?:--(\d+))?$/.exec(name);
  return found && { a: found[1]!, b: found[2]!, parallel: Number(found[3] ?? 1) };
}
