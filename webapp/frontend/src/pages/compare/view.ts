/** What the figure of a comparison shows: which metric against which parameter, and as what. */
import { type Comparison, hasValue, isShared, type MetricRow } from './comparison';
import { classesOf, type Parameter, parametersOf, type Repeats, repeatsOf, telling } from './parameters';

export type Kind = 'lines' | 'bars' | 'boxes';

export interface View {
  /** Name of a metric, or TOKENS. */
  metric: string;
  /** Path of a parameter, or RUN. */
  x: string;
  /** Path of a parameter, or NONE. */
  hue: string;
  kind: Kind;
  logX: boolean;
  logY: boolean;
}

/** What a person has chosen; the rest follows from the runs. */
export type Chosen = Partial<View>;

/** The times of single tokens, as boxes. */
export const TOKENS = 'tokens';
/** Every run by itself. */
export const RUN = 'run';
export const NONE = 'none';

/** A comparison with what follows from it alone. */
export interface Compared {
  comparison: Comparison;
  parameters: readonly Parameter[];
  groups: readonly Repeats[];
  /** Metrics that at least two runs have. */
  metrics: readonly MetricRow[];
  hasTokens: boolean;
}

export function comparedOf(comparison: Comparison): Compared {
  return {
    comparison,
    parameters: parametersOf(comparison),
    groups: repeatsOf(comparison),
    metrics: comparison.metrics.filter((row) => hasValue(row) && isShared(row)),
    hasTokens: comparison.series.some(({ token_s }) => token_s.length > 1),
  };
}

/** The view with everything that was not chosen; and a sentence for each choice that these runs do not have. */
export function viewOf(compared: Compared, chosen: Chosen): { view: View; problems: string[] } {
  const { parameters, metrics, hasTokens } = compared;
  const problems: string[] = [];
  const known = (what: string, name: string | undefined, names: readonly string[], missing: string) => {
    if (name === undefined || names.includes(name)) return name;
    problems.push(`The address asks for ${name} ${what}, ${missing}: something else is shown.`);
    return undefined;
  };
  const paths = parameters.map(({ path }) => path);
  const same = 'in which these runs do not differ';
  const metric =
    known(
      'as the value',
      chosen.metric,
      [...metrics.map(({ name }) => name), ...(hasTokens ? [TOKENS] : [])],
      'which no two of these runs have',
    ) ??
    metrics[0]?.name ??
    TOKENS;
  const x = known('on the x axis', chosen.x, [RUN, ...paths], same) ?? usualX(compared);
  const asked = known('as the colour', chosen.hue, [NONE, ...paths], same);
  const hue = asked === undefined || asked === x ? usualHue(compared, x) : asked;
  const along = parameters.find(({ path }) => path === x);
  const isPositive = along !== undefined && allPositive(along.values);
  if (chosen.logX && !isPositive)
    problems.push(
      `The address asks for a logarithmic x axis, which needs numbers above 0 ${along ? `and ${along.title} has others` : 'and not single runs'}: the axis is not logarithmic.`,
    );
  const kind = metric === TOKENS ? 'boxes' : (chosen.kind ?? (along?.isNumeric ? 'lines' : 'bars'));
  return {
    view: {
      metric,
      x,
      hue,
      kind,
      logX: isPositive && (chosen.logX ?? spansDecades(along.values)),
      logY: chosen.logY ?? false,
    },
    problems,
  };
}

/** Whether a logarithmic axis has a place for each of the values. */
export const allPositive = (values: readonly unknown[]): values is readonly number[] =>
  values.every((value) => typeof value === 'number' && value > 0);

/** Whether the values are positive numbers of which the largest is at least ten times the least. */
export const spansDecades = (values: readonly unknown[]): boolean =>
  allPositive(values) && Math.max(...values) >= 10 * Math.min(...values);

/** A numeric parameter if one was varied, else a categorical one, but the strategy only if nothing else was. */
export function usualX({ parameters }: Compared): string {
  const strategy = parameters.find(({ path }) => path === 'strategy');
  const free = parameters.filter((one) => one !== strategy && !follows(one, strategy) && !isNested(one));
  const numeric = free.filter((one) => one.isNumeric && isVaried(one, free));
  const most = Math.max(...numeric.map(({ keys }) => new Set(keys).size));
  const x = numeric.find(({ keys }) => new Set(keys).size === most) ?? free[0] ?? strategy;
  return x?.path ?? RUN;
}

/** The strategy if it differs, else what keeps most runs apart that are no repeats and have the same x. */
export function usualHue({ comparison, parameters, groups }: Compared, x: string): string {
  const others = parameters.filter(({ path }) => path !== x);
  const strategy = others.find(({ path }) => path === 'strategy');
  if (strategy) return strategy.path;
  if (x === RUN) return NONE;
  const along = parameters.filter(({ path }) => path === x);
  return telling(comparison, groups, others, along)[0]?.path ?? NONE;
}

/** Whether a value is a list or an object, which has no place on an axis that people can read. */
const isNested = ({ values }: Parameter) =>
  values.some((value) => typeof value === 'object' && value !== null);

/** Whether runs of one strategy never differ in it: it says no more than the strategy. */
function follows(one: Parameter, strategy: Parameter | undefined): boolean {
  if (!strategy) return false;
  const pairs = one.keys.map((key, run) => JSON.stringify([strategy.keys[run], key]));
  return new Set(pairs).size === new Set(strategy.keys).size;
}

/** A number of a model or a cluster was varied by itself if nothing else of that model or cluster differs but its
 * name: otherwise these are different models or clusters. */
function isVaried({ path }: Parameter, parameters: readonly Parameter[]): boolean {
  const [root] = path.split('.');
  if (root !== 'model' && root !== 'cluster') return true;
  return (
    parameters.filter((other) => other.path.startsWith(`${root}.`) && other.path !== `${root}.name`)
      .length === 1
  );
}

const SWITCH: Readonly<Record<string, boolean>> = { '1': true, '0': false };
const KINDS: readonly string[] = ['lines', 'bars', 'boxes'];
const WORDS: Readonly<Record<string, readonly string[]>> = {
  as: KINDS,
  logx: Object.keys(SWITCH),
  logy: Object.keys(SWITCH),
};

/** A sentence for each word of an address that no figure knows. */
export const unknownIn = (address: URLSearchParams): string[] =>
  Object.entries(WORDS).flatMap(([name, words]) => {
    const word = address.get(name);
    if (word === null || words.includes(word)) return [];
    return [`The address has ${name}=${word}, expected ${words.join(' or ')}: it is ignored.`];
  });

/** The choices that an address has. */
export function chosenIn(address: URLSearchParams): Chosen {
  const text = (name: string) => address.get(name) ?? undefined;
  const kind = text('as');
  return {
    metric: text('y'),
    x: text('x'),
    hue: text('hue'),
    kind: kind !== undefined && KINDS.includes(kind) ? (kind as Kind) : undefined,
    logX: SWITCH[text('logx') ?? ''],
    logY: SWITCH[text('logy') ?? ''],
  };
}

/** What the address gets for a choice. */
export function addressOf({ metric, x, hue, kind, logX, logY }: Chosen): Record<string, string> {
  const all = { y: metric, x, hue, as: kind, logx: flag(logX), logy: flag(logY) };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

const flag = (on: boolean | undefined) => (on === undefined ? undefined : on ? '1' : '0');

/** The groups that the figure shows: repeats together, or every run by itself. */
export const groupsAt = ({ comparison, groups }: Compared, x: string): readonly Repeats[] =>
  x === RUN ? classesOf([...comparison.runs.keys()], String) : groups;
