/** The design of an experiment: what a person has chosen so far, and the experiment that it means. */
import type { ClusterSpec, ModelRow, StrategyRow } from '@/api/types';
import type { Schemas } from '@/api/types/schemas';
import {
  BIT_RATE,
  BYTE_RATE,
  FLOP_RATE,
  fromSI,
  PERCENT,
  POWER,
  type Quantity,
  SIZE,
  TIME,
  unitFor,
} from '@/format/quantities';
import { metricText } from '@/format/metrics';
import { capital } from '@/format/words';
import { type Draft, drafts, FIRST_DRAFT, FIRST_WORK, toRequest } from '@/run/request/draft';
import { levelsText, parseLevels, spread, unitOf } from './levels';
import type { Coordinate, ExperimentDocument, Factor, FigureSpec, Level } from './types';

/**
 * What may be varied, as the server lists it for this cluster and model. `[*]` in its path stands for all of
 * `targets`; `low` and `high` are the range in which values make sense, which a whole number must not be below.
 */
export type FactorOption = Schemas['FactorOption'];

/** A factor while it is edited. */
export interface FactorDraft {
  option: FactorOption;
  /** Links or devices that it changes; all if empty. */
  targets: readonly string[];
  /** Numbers as typed, in `unit`; not used by choices. */
  text: string;
  /** Label of the unit in which numbers are typed. */
  unit: string;
  chosen: readonly Coordinate[];
}

/** A strategy that takes part, with parameters that differ from its defaults. */
export interface Method {
  strategy: string;
  title: string;
  params: Readonly<Record<string, unknown>>;
}

export interface View {
  kind: FigureSpec['kind'];
  metric: string;
  /** Names of factors; null: chosen by `viewOf`. */
  x: string | null;
  series: string | null;
  facet: string | null;
  logX: boolean | null;
  logY: boolean;
  /** The level of every factor that no axis shows. */
  fixed: Readonly<Record<string, Coordinate>>;
}

export interface Design {
  title: string;
  /** Everything that is not varied. Its strategy and parameters are those of `methods`. */
  run: Draft;
  methods: readonly Method[];
  /** What a stored experiment calls its factor of strategies: its tables and claims name it. */
  strategyFactor?: string;
  factors: readonly FactorDraft[];
  repeats: number;
  view: View;
}

export const FIRST_VIEW: View = {
  kind: 'lines',
  metric: 'latency_s',
  x: null,
  series: null,
  facet: null,
  logX: null,
  logY: false,
  fixed: {},
};

/** Prompts of random tokens, so that a seed changes them; short, so that a prediction takes a moment. */
const SHORT: Partial<Draft> = {
  promptKind: 'length',
  workload: { ...FIRST_WORK, prompt_tokens: 32, new_tokens: 8 },
};

/** The design to start with: around a run (`isRun`: its workload stays, its strategy is ticked), or new. */
export function firstDesign(run: Partial<Draft>, strategies: readonly StrategyRow[], isRun: boolean): Design {
  const draft: Draft = { ...FIRST_DRAFT, ...(isRun ? {} : SHORT), ...run };
  const row = strategies.find(({ name }) => name === draft.strategy);
  const method = {
    strategy: draft.strategy,
    title: row?.title ?? draft.strategy,
    params: draft.params[draft.strategy] ?? {},
  };
  return {
    title: '',
    run: draft,
    methods: isRun ? [method] : [],
    factors: [],
    repeats: 1,
    view: FIRST_VIEW,
  };
}

const BY_UNIT: Record<string, Quantity> = {
  'bit/s': BIT_RATE,
  'B/s': BYTE_RATE,
  B: SIZE,
  s: TIME,
  'FLOP/s': FLOP_RATE,
  W: POWER,
  fraction: PERCENT,
};

/** Units in which a factor's numbers may be typed. */
export function quantityOf(unit: string): Quantity {
  return BY_UNIT[unit] ?? [{ label: unit, factor: 1 }];
}

function unitIn({ option, unit }: FactorDraft) {
  const quantity = quantityOf(option.unit);
  return quantity.find(({ label }) => label === unit) ?? quantity[0];
}

/** A new factor: half, once and twice what the base has, or its first two choices. */
export function newFactor(option: FactorOption): FactorDraft {
  const { current, kind, low, high } = option;
  const quantity = quantityOf(option.unit);
  if (kind === 'choice') {
    const values = option.choices.map(({ value }) => value);
    const first = current !== null && values.includes(current) ? [current] : values.slice(0, 1);
    const second = values.find((value) => !first.includes(value));
    return {
      option,
      targets: [],
      text: '',
      unit: '',
      chosen: second === undefined ? first : [...first, second],
    };
  }
  const around =
    typeof current === 'number' && current > 0
      ? [current / 2, current, current * 2]
      : spread(low ?? 1, high ?? 2, 3, { log: (low ?? 1) > 0, whole: kind === 'whole' });
  const bounded = around
    .map((value) => (kind === 'whole' ? Math.round(value) : value))
    .map((value) => Math.min(Math.max(value, low ?? 0), high ?? Infinity));
  const values = [...new Set(bounded)];
  const unit = unitOf(values, quantity);
  return { option, targets: [], text: levelsText(values, unit), unit: unit.label, chosen: [] };
}

/** Values of a factor in SI, or why there are none. */
export function levelsOf(
  factor: FactorDraft,
): { values: readonly Coordinate[]; problem: null } | { values: null; problem: string } {
  if (factor.option.kind === 'choice') {
    return factor.chosen.length > 0
      ? { values: factor.chosen, problem: null }
      : { values: null, problem: 'Choose at least one value.' };
  }
  const { kind, low } = factor.option;
  return parseLevels(factor.text, unitIn(factor), {
    whole: kind === 'whole',
    min: kind === 'whole' ? (low ?? 0) : 0,
  });
}

/** What the design lacks, in one sentence; null if it can be computed. */
export function lacks(design: Design, cluster: ClusterSpec | null): string | null {
  if (!cluster) return 'Choose a cluster.';
  if (design.methods.length === 0) return 'Tick at least one strategy.';
  const titles = design.methods.map(({ title }) => title.trim());
  const twice = titles.find((title, at) => !title || titles.indexOf(title) !== at);
  if (twice !== undefined)
    return twice ? `Two strategies are called ${twice}: rename one.` : 'A strategy has no name.';
  for (const factor of design.factors) {
    const { problem } = levelsOf(factor);
    if (problem) return `${factor.option.title}: ${problem}`;
  }
  return null;
}

/** The factors of the experiment: the strategies first. */
export function factorsOf(design: Design): Factor[] {
  const strategies: Factor = {
    name: design.strategyFactor ?? 'strategy',
    title: 'Strategy',
    unit: '',
    paths: ['strategy'],
    values: design.methods.map((method) => levelOf(method, design.methods)),
  };
  return [strategies, ...design.factors.map(factorOf)];
}

/** Whether the values of this factor are strategies. */
export const isOfStrategies = ({ paths }: Factor) => paths.length === 1 && paths[0] === 'strategy';

/** A strategy that takes part twice is told apart by its title, since both have the same name. */
function levelOf({ strategy, title, params }: Method, methods: readonly Method[]): Level {
  const own = Object.keys(params).length > 0 ? { params } : {};
  if (methods.filter((other) => other.strategy === strategy).length > 1)
    return { label: title, set: { strategy, ...own } };
  return { value: strategy, label: title, ...(own.params ? { set: own } : {}) };
}

/** Another one of the same strategy, with a title of its own: "Voltage 2". */
export function anotherOf(method: Method, methods: readonly Method[]): Method {
  const titles = new Set(methods.map(({ title }) => title));
  const base = method.title.replace(/ \d+$/, '');
  let number = 2;
  while (titles.has(`${base} ${number}`)) number += 1;
  return { ...method, title: `${base} ${number}` };
}

/** After the first method of a strategy that follows its paper's rule, the same one with planner=best. */
export function withBestPlanners(methods: readonly Method[], strategies: readonly StrategyRow[]): Method[] {
  const seen = new Set(
    methods.flatMap(({ strategy, params }) => (params.planner === 'best' ? strategy : [])),
  );
  return methods.flatMap((method) => {
    const row = strategies.find(({ name }) => name === method.strategy);
    const planner = row?.params_schema.properties?.planner;
    const isBest = (method.params.planner ?? planner?.default) === 'best' || method.params.plan != null;
    if (!planner || isBest || seen.has(method.strategy)) return [method];
    seen.add(method.strategy);
    return [method, { ...method, title: `${method.title}, best`, params: { planner: 'best' } }];
  });
}

function factorOf(factor: FactorDraft): Factor {
  const { option, targets } = factor;
  const all = targets.length === 0 || targets.length === option.targets.length;
  const choice = new Map(option.choices.map(({ value, label }) => [value, label]));
  return {
    name: option.name,
    title: all ? option.title : `${option.title} (${targets.join(', ')})`,
    unit: option.unit,
    paths: all ? [option.path] : targets.map((target) => option.path.replace('[*]', `[${target}]`)),
    values: (levelsOf(factor).values ?? []).map((value): Level => ({
      value,
      label:
        choice.get(value) ?? (typeof value === 'number' ? metricText(value, option.unit) : String(value)),
    })),
  };
}

/** The figure that is shown: what the person has not chosen follows from the factors. */
export function viewOf(factors: readonly Factor[], view: View): FigureSpec {
  const varied = factors.filter(({ values }) => values.length > 1);
  const isNumeric = ({ values }: Factor) => values.every(({ value }) => typeof value === 'number');
  const known = (name: string | null) =>
    name === '' || factors.some((factor) => factor.name === name) ? name : null;
  const chosenX = known(view.x) || null;
  const x =
    chosenX ??
    (varied.find(isNumeric) ?? varied.find((factor) => !isOfStrategies(factor)) ?? factors[0])?.name ??
    '';
  const others = varied.filter(({ name }) => name !== x);
  const wanted = known(view.series);
  const series =
    wanted !== null && wanted !== x ? wanted : ((others.find(isOfStrategies) ?? others[0])?.name ?? '');
  const left = others.filter(({ name }) => name !== series);
  const asked = known(view.facet);
  const facet = asked !== null && asked !== x && asked !== series ? asked : (left[0]?.name ?? '');
  const xFactor = factors.find(({ name }) => name === x);
  const numericX = xFactor ? isNumeric(xFactor) : false;
  return {
    name: 'figure',
    kind: view.kind === 'lines' && !numericX ? 'bars' : view.kind,
    x,
    metric: view.metric,
    series,
    facet,
    where: left
      .filter(({ name }) => name !== facet)
      .map(({ name, values }) => condition(name, view.fixed[name] ?? coordinateOf(values[0]!))),
    log_x: view.logX ?? (xFactor !== undefined && numericX && spansDecades(xFactor)),
    log_y: view.logY,
  };
}

function spansDecades({ values }: Factor): boolean {
  const numbers = values.map(({ value }) => Number(value));
  return Math.min(...numbers) > 0 && Math.max(...numbers) / Math.min(...numbers) >= 8;
}

/** A level's coordinate: its value where that is simple, else its label. */
export function coordinateOf({ value, label }: Level): Coordinate {
  return typeof value === 'number' || typeof value === 'string' || typeof value === 'boolean'
    ? value
    : (label ?? '');
}

/** `rate == 1e7` in the language of conditions. */
export function condition(name: string, value: Coordinate): string {
  const literal =
    typeof value === 'string' ? `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'` : String(value);
  return `${name} == ${literal}`;
}

/**
 * The experiment that a design means; the cluster is part of it, so that a later edit of the drawing changes nothing.
 * What `stored` has besides (tables, claims, published values) stays.
 */
export function toExperiment(
  design: Design,
  cluster: ClusterSpec,
  model: ModelRow | undefined,
  stored: ExperimentDocument | null = null,
): ExperimentDocument {
  const factors = factorsOf(design);
  const title = design.title.trim() || titleOf(design, cluster);
  const figure = viewOf(factors, design.view);
  return {
    ...stored,
    name: slug(title) || 'experiment',
    title,
    description: stored?.description ?? '',
    base: baseOf(design.run, cluster, model),
    factors,
    seeds: Array.from({ length: design.repeats }, (_, index) => design.run.seed + index),
    worlds: ['predicted', 'emulated'],
    figures: stored?.figures[0]
      ? [{ ...stored.figures[0], ...figure, name: stored.figures[0].name }, ...stored.figures.slice(1)]
      : [figure],
  };
}

/** The run that all points share, without strategy and seed. Boards are a world of its points, not its dilation. */
export function baseOf(
  run: Draft,
  cluster: ClusterSpec,
  model: ModelRow | undefined,
): Record<string, unknown> {
  const request = toRequest(run, model);
  const { workload, weights, weight_bits, activation_bits, draft_model, likely_acceptance } = request;
  const { scenario, dilation, compute_model, failover, silence_s } = request;
  const { board_links } = run;
  const isBoards = cluster.devices.every(({ node }) => node);
  return {
    cluster,
    model: run.model,
    weights,
    weight_bits,
    ...(activation_bits && { activation_bits }),
    ...(draft_model && { draft_model }),
    ...(drafts(run) && { likely_acceptance }),
    workload,
    scenario,
    dilation: dilation === 'nodes' ? 'auto' : dilation,
    ...(isBoards && board_links === 'given' && { board_links }),
    compute_model,
    failover,
    silence_s,
  };
}

/** "4 strategies by rate of the links on lab-3". */
export function titleOf({ methods, factors }: Design, cluster: ClusterSpec): string {
  const what = methods.length === 1 ? methods[0]!.title : `${methods.length} strategies`;
  const by = factors.map(({ option }) => option.title.toLowerCase()).join(' and ');
  return `${what}${by ? ` by ${by}` : ''} on ${cluster.name}`;
}

/** "Four methods, 10–500 Mbit/s" → "four-methods-10-500-mbit-s". */
export function slug(title: string): string {
  const words = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^[-0-9]+|-+$/g, '');
  return words.slice(0, 60);
}

/** How many points the design has; computed before anything is sent. */
export function numPoints(design: Design): number {
  return factorsOf(design).reduce((product, { values }) => product * values.length, design.repeats);
}

/** How axes and tables call a factor. */
export function factorTitle(factors: readonly Factor[], name: string): string {
  return factors.find((factor) => factor.name === name)?.title || capital(name.replaceAll('_', ' '));
}

/** How the experiment calls a level of a factor: its label, or a number with the factor's unit. */
export function labelOf(factors: readonly Factor[], name: string, value: Coordinate | undefined): string {
  if (value === undefined) return '–';
  const factor = factors.find((one) => one.name === name);
  const level = factor?.values.find((one) => coordinateOf(one) === value);
  if (level?.label) return level.label;
  if (typeof value !== 'number' || !factor?.unit) return String(value);
  const unit = unitFor(value, quantityOf(factor.unit));
  return `${Number(fromSI(value, unit).toPrecision(6))} ${unit.label}`;
}
