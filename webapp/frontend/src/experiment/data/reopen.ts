/** A stored experiment as a design, so that it can be edited again. */
import type { ClusterRow, ClusterSpec, RunRequest, StrategyRow } from '@/api/types';
import { type Draft, fromRequest } from '@/run/request/draft';
import {
  condition,
  coordinateOf,
  type Design,
  type FactorDraft,
  FIRST_VIEW,
  type Method,
  quantityOf,
  isOfStrategies,
} from './design';
import { levelsText, unitOf } from './levels';
import type { ExperimentDocument, Factor, Level } from './types';
import { linkName } from '@/format/links';

/** The design, or why this page cannot edit the experiment: its file can. */
export type Reopened = { design: Design; problem: null } | { design: null; problem: string };

export function reopened(
  experiment: ExperimentDocument,
  clusters: readonly ClusterRow[],
  strategies: readonly StrategyRow[],
): Reopened {
  const { base, factors, seeds, figures, title } = experiment;
  const strategy = factors.find(isOfStrategies);
  const others = factors.filter((factor) => factor !== strategy);
  if (!strategy) return refused('it has no factor for the strategy');
  if (experiment.zipped?.length || experiment.points?.length || experiment.grid === false)
    return refused('its points are not the full grid of its factors');
  const composed = others.find(({ values }) => values.some(({ set }) => Object.keys(set ?? {}).length > 0));
  if (composed) return refused(`a value of ${composed.title || composed.name} sets several fields`);
  if (seeds.some((seed, at) => seed !== seeds[0]! + at)) return refused('its seeds are not consecutive');
  const cluster = clusterOf(base.cluster, clusters);
  if (!cluster) return refused(`there is no stored cluster ${String(base.cluster)}`);
  const [figure] = figures;
  const run = runOf(base, cluster, strategy, seeds[0] ?? 0);
  return {
    problem: null,
    design: {
      title: title || '',
      run,
      methods: strategy.values.map((level) => methodOf(level, strategies)),
      ...(strategy.name === 'strategy' ? {} : { strategyFactor: strategy.name }),
      factors: others.map((factor) => factorDraft(factor, cluster)),
      repeats: seeds.length,
      view: figure
        ? {
            ...FIRST_VIEW,
            kind: figure.kind,
            metric: figure.metric,
            x: figure.x,
            series: figure.series,
            facet: figure.facet,
            logX: figure.log_x,
            logY: figure.log_y,
            fixed: fixedIn(figure.where, others),
          }
        : FIRST_VIEW,
    },
  };
}

const refused = (reason: string): Reopened => ({
  design: null,
  problem: `This page cannot edit the experiment because ${reason}: export its file, change it, and import it.`,
});

function clusterOf(cluster: unknown, clusters: readonly ClusterRow[]): ClusterSpec | null {
  if (typeof cluster === 'string') return clusters.find(({ name }) => name === cluster)?.spec ?? null;
  return typeof cluster === 'object' && cluster !== null ? (cluster as ClusterSpec) : null;
}

function runOf(base: Record<string, unknown>, cluster: ClusterSpec, { values }: Factor, seed: number): Draft {
  const request = {
    dilation: 'auto',
    params: {},
    workload: {},
    ...base,
    cluster,
    strategy: String(values[0]?.set?.strategy ?? values[0]?.value),
    seed,
  };
  return fromRequest(request as unknown as RunRequest);
}

function methodOf({ value, label, set }: Level, strategies: readonly StrategyRow[]): Method {
  const strategy = String(set?.strategy ?? value);
  const row = strategies.find(({ name }) => name === strategy);
  const params: Record<string, unknown> = {};
  for (const [path, item] of Object.entries(set ?? {})) {
    if (path === 'params') Object.assign(params, item);
    else if (path.startsWith('params.')) params[path.slice('params.'.length)] = item;
  }
  return { strategy, title: label || (row?.title ?? strategy), params };
}

/** The factor with an option made from its own values; the server's option replaces it when it is known. */
function factorDraft({ name, title, unit, paths, values }: Factor, cluster: ClusterSpec): FactorDraft {
  const levels = values.map(coordinateOf);
  const numeric = levels.every((value) => typeof value === 'number');
  const targets = paths.flatMap((path) => /\[([^*\]]+)\]/.exec(path)?.[1] ?? []);
  const shownUnit = numeric ? unitOf(levels, quantityOf(unit)) : null;
  return {
    option: {
      path: targets.length > 0 ? paths[0]!.replace(/\[[^\]]+\]/, '[*]') : (paths[0] ?? name),
      name,
      title: title.replace(/ \([^)]*\)$/, '') || name,
      group: '',
      unit,
      kind: numeric ? 'number' : 'choice',
      targets: targets.length === 0 ? [] : targetsOf(paths[0]!, cluster),
      choices: numeric
        ? []
        : values.map((level) => ({ value: coordinateOf(level), label: level.label || String(level.value) })),
      current: levels[0] ?? null,
      low: null,
      high: null,
    },
    targets,
    text: shownUnit ? levelsText(levels as number[], shownUnit) : '',
    unit: shownUnit?.label ?? '',
    chosen: numeric ? [] : levels,
  };
}

/** The names that may stand in brackets. */
function targetsOf(path: string, { links, devices }: ClusterSpec): string[] {
  return path.startsWith('cluster.links[') ? links.map(linkName) : devices.map(({ name }) => name);
}

function fixedIn(where: readonly string[], factors: readonly Factor[]) {
  return Object.fromEntries(
    factors.flatMap(({ name, values }) =>
      values
        .map(coordinateOf)
        .flatMap((value) => (where.includes(condition(name, value)) ? [[name, value] as const] : [])),
    ),
  );
}
