/** The parameters in which compared runs differ, and which of the runs are repeats of each other. */
import { keyOf, paramTexts } from '@/format/metrics';
import type { Comparison } from './comparison';

export interface Parameter {
  /** Path of its first field; names it in the address. */
  path: string;
  /** In words where there are some, else the path. */
  title: string;
  /** What a value needs before it to be understood: "new tokens" before 16; empty for a name. */
  noun: string;
  /** Per run; keys and texts are equal where the values are, and only there. */
  values: readonly unknown[];
  keys: readonly string[];
  texts: readonly string[];
  /** Whether every run has a number here. */
  isNumeric: boolean;
}

/** Runs that agree in all but the seed, by their places in the comparison. */
export type Repeats = readonly number[];

/** What repeats may differ in: the seed, and words that change nothing. */
const FREE = /^(seed|cluster\.(title|description|(devices|switches|links)\[.*\]\.(title|source)))$/;
const WORLD = 'world';

/** Which parameters people ask about first. */
const ORDER = [
  /^strategy$/,
  /^model\.name$/,
  /^cluster\.name$/,
  /^workload\./,
  /^params\./,
  /^scenario\./,
  /^cluster\.links/,
  /^cluster\./,
];
const NAMES: Readonly<Record<string, string>> = {
  strategy: 'strategy',
  'model.name': 'model',
  'cluster.name': 'cluster',
};
const NOUNS: Readonly<Record<string, string>> = {
  'workload.new_tokens': 'new tokens',
  'workload.prompt_tokens': 'tokens of the prompt',
  'workload.requests': 'requests',
  'workload.rate_per_s': 'requests a second',
  'workload.users': 'users',
  'workload.max_batch': 'requests served together',
  'workload.pattern': 'arrivals',
  'cluster.links[*].bit_per_s': 'rate of links',
  'cluster.links[*].delay_s': 'delay of links',
  'cluster.links[*].loss_frac': 'loss of links',
  'cluster.devices[*].flop_per_s': 'speed of devices',
  'cluster.devices[*].memory_bytes': 'memory of devices',
};

const rankOf = (path: string) => {
  const rank = ORDER.findIndex((pattern) => pattern.test(path));
  return rank < 0 ? ORDER.length : rank;
};

/** The differing parameters but seed and world, in the order in which they are offered. Fields of one list that have
 * the same values, as the rates of all links of a cluster, are one parameter. */
export function parametersOf({ params }: Comparison): Parameter[] {
  const alike = new Map<string, { paths: string[]; values: unknown[] }>();
  for (const { path, values, differs } of params) {
    if (!differs || FREE.test(path) || path === WORLD) continue;
    const key = JSON.stringify([patternOf(path), values]);
    const found = alike.get(key);
    if (found) found.paths.push(path);
    else alike.set(key, { paths: [path], values });
  }
  const found = [...alike.values()]
    .map(({ paths, values }) => parameterOf(paths, values))
    .toSorted((a, b) => rankOf(a.path) - rankOf(b.path));
  const titles = found.map(({ title }) => title);
  return found.map((one) =>
    titles.indexOf(one.title) === titles.lastIndexOf(one.title)
      ? one
      : { ...one, title: one.path, noun: one.path },
  );
}

/** `cluster.links[a--b].bit_per_s` → `cluster.links[*].bit_per_s` */
const patternOf = (path: string) => path.replaceAll(/\[[^\]]*\]/g, '[*]');

function parameterOf(paths: readonly string[], values: readonly unknown[]): Parameter {
  const path = paths[0] ?? '';
  const pattern = patternOf(path);
  const noun = NOUNS[pattern] ?? pattern.split('.').at(-1) ?? '';
  const title = NAMES[path] ?? NOUNS[pattern] ?? (paths.length > 1 ? pattern : path);
  return {
    path,
    title: paths.length > 1 ? titleOfMany(title, paths.length) : title,
    noun: path in NAMES ? '' : noun,
    values,
    keys: values.map(keyOf),
    texts: paramTexts(path, values),
    isNumeric: values.every((value) => typeof value === 'number'),
  };
}

/** "rate of links" of three alike → "rate of 3 links" */
function titleOfMany(title: string, count: number): string {
  const told = title.replace(/ of (?=links$|devices$)/, ` of ${count} `);
  return told === title ? `${title} (${count} alike)` : told;
}

/** A value with what it is of, where it does not say so itself. */
export const toldText = ({ noun, texts }: Parameter, run: number): string =>
  `${noun} ${texts[run] ?? ''}`.trim();

/** All runs in groups of repeats, in the order of their first runs. The world counts: a prediction is no repeat of a
 * measurement. */
export function repeatsOf({ runs, params }: Comparison): Repeats[] {
  const deciding = params.filter(({ path, differs }) => differs && !FREE.test(path));
  return classesOf(
    runs.map((_, at) => at),
    (run) => JSON.stringify(deciding.map(({ values }) => values[run])),
  );
}

/** Items with equal keys together. */
export function classesOf<T>(items: readonly T[], keyOf: (item: T) => string): T[][] {
  const found = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const there = found.get(key);
    if (there) there.push(item);
    else found.set(key, [item]);
  }
  return [...found.values()];
}

/** Few parameters that, with `given`, tell all groups of one world apart: each next one separates the most groups. */
export function telling(
  { runs }: Comparison,
  groups: readonly Repeats[],
  parameters: readonly Parameter[],
  given: readonly Parameter[] = [],
): Parameter[] {
  const chosen: Parameter[] = [];
  const count = (more: readonly Parameter[]) => {
    const all = [...given, ...chosen, ...more];
    return classesOf(groups, ([run = 0]) =>
      JSON.stringify([runs[run]?.world, ...all.map(({ keys }) => keys[run])]),
    ).length;
  };
  for (;;) {
    const separate = count([]);
    // In the order of `parameters`, of which the first wins among equals.
    const [best] = parameters
      .map((parameter) => ({ parameter, separate: count([parameter]) }))
      .filter((one) => one.separate > separate)
      .toSorted((a, b) => b.separate - a.separate);
    if (!best) return chosen.toSorted((a, b) => parameters.indexOf(a) - parameters.indexOf(b));
    chosen.push(best.parameter);
  }
}
