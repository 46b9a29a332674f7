/** What the address of a comparison says of its figure: the server takes the same words. */

const WORDS: Readonly<Record<string, readonly string[]>> = {
  as: ['lines', 'bars', 'boxes'],
  logx: ['1', '0'],
  logy: ['1', '0'],
};
const NAMES = ['y', 'x', 'hue', ...Object.keys(WORDS)];

/** A sentence for each word of an address that no figure knows. */
export const unknownIn = (address: URLSearchParams): string[] =>
  Object.entries(WORDS).flatMap(([name, words]) => {
    const word = address.get(name);
    if (word === null || words.includes(word)) return [];
    return [`The address has ${name}=${word}, expected ${words.join(' or ')}: it is ignored.`];
  });

/** The choices that an address has, without the words that no figure knows. */
export const chosenIn = (address: URLSearchParams): [string, string][] =>
  NAMES.flatMap((name) => {
    const word = address.get(name);
    return word === null || WORDS[name]?.includes(word) === false ? [] : [[name, word]];
  });
