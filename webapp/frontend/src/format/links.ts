/** What links are called: `a--b` as commands and reports do, `a – b` for people. */

interface Ends {
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
