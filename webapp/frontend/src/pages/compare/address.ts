/** What the address of a comparison says: its runs, and of its figure the words that the server takes. */

/** The runs, and the one that the others are set against: the first if the address names none of them. */
export function comparedIn(address: URLSearchParams): { ids: number[]; baseline: number | undefined } {
  const ids = (address.get('ids') ?? '')
    .split(',')
    .filter((text) => /^\d+$/.test(text))
    .map(Number);
  const wanted = Number(address.get('baseline'));
  return { ids, baseline: ids.includes(wanted) ? wanted : ids[0] };
}

/** The address without some runs. */
export function without(address: URLSearchParams, gone: readonly number[]): URLSearchParams {
  const { ids } = comparedIn(address);
  const left = new URLSearchParams(address);
  left.set('ids', ids.filter((id) => !gone.includes(id)).join(','));
  left.set('baseline', String(comparedIn(left).baseline));
  return left;
}

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
