/** The figure of a comparison: a mark per group of repeats, with mean and interval, or as a box. */
import type { FigureData, Mark, Series, Source } from '@/experiment/chart/model';
import { averageOf } from '@/run/table/groups';
import { boxOf, type Comparison } from './comparison';
import { classesOf, type Parameter, type Repeats, telling, toldText } from './parameters';
import { type Compared, groupsAt, RUN, TOKENS, type View } from './view';

export interface RunFigure {
  data: FigureData;
  /** The parameter on the x axis; undefined: every run by itself. */
  along: Parameter | undefined;
  /** Parameters that keep runs apart which are no repeats, though they have the same x and colour. */
  split: readonly Parameter[];
}

export function figureOf(compared: Compared, view: View): RunFigure {
  const { comparison, parameters } = compared;
  const groups = groupsAt(compared, view.x);
  const [along, hue] = [view.x, view.hue].map((name) => parameters.find(({ path }) => path === name));
  const given = [along, hue].filter((one) => one !== undefined);
  const split = view.x === RUN ? [] : telling(comparison, groups, parameters, given);
  const named = [...(hue ? [hue] : []), ...split];
  const labelOf = ([run = 0]: Repeats) => named.map((one) => toldText(one, run)).join(' · ');
  const numeric = along?.isNumeric === true && view.kind === 'lines';
  const placeOf = ([run = 0]: Repeats): Pick<Mark, 'x' | 'xText'> => {
    const value = along?.values[run];
    const text = along ? (along.texts[run] ?? '') : String(comparison.runs[run]?.id);
    return { x: numeric && typeof value === 'number' ? value : text, xText: text };
  };
  const marks = inOrder(groups, along).map((group) => ({
    group,
    label: labelOf(group),
    source: sourceOf(comparison, group),
    mark: markOf(comparison, view, group, placeOf(group)),
  }));
  const series = classesOf(marks, ({ label, source }) => JSON.stringify([label, source])).map(
    ([first, ...more]): Series => ({
      label: first!.label,
      source: first!.source,
      marks: [first!, ...more].map(({ mark }) => mark),
    }),
  );
  const row = comparison.metrics.find(({ name }) => name === view.metric);
  return {
    data: {
      kind: view.kind === 'lines' && !numeric ? 'scatter' : view.kind,
      x: { title: along?.title ?? 'run', unit: '', log: numeric && view.logX },
      y: {
        title: row?.title ?? 'Time of each token after the first',
        unit: row?.unit ?? 's',
        log: view.logY,
      },
      facets: [{ label: '', series }],
      labels: inOrder(groups, hue).reduce<string[]>(
        (labels, group) => (labels.includes(labelOf(group)) ? labels : [...labels, labelOf(group)]),
        [],
      ),
      categories: numeric ? null : [...new Set(marks.map(({ mark }) => mark.xText))],
    },
    along,
    split,
  };
}

/** By the values of a parameter: numbers by size, others as people sort names. */
function inOrder(groups: readonly Repeats[], parameter: Parameter | undefined): readonly Repeats[] {
  if (!parameter) return groups;
  const { values, texts, isNumeric } = parameter;
  return groups.toSorted(([a = 0], [b = 0]) =>
    isNumeric
      ? Number(values[a]) - Number(values[b])
      : (texts[a] ?? '').localeCompare(texts[b] ?? '', 'en', { numeric: true }),
  );
}

const sourceOf = ({ runs }: Comparison, [run = 0]: Repeats): Source =>
  runs[run]?.world === 'simulated' ? 'predicted' : 'emulated';

function markOf(comparison: Comparison, view: View, group: Repeats, place: Pick<Mark, 'x' | 'xText'>): Mark {
  const { runs, metrics, series } = comparison;
  const metric = metrics.find(({ name }) => name === view.metric);
  const ids = group.map((run) => String(runs[run]?.id));
  const repeats = group.flatMap((run) => {
    const value = metric?.values[run] ?? null;
    return value === null ? [] : [{ value, digest: String(runs[run]?.id), runId: runs[run]?.id ?? null }];
  });
  const values =
    view.metric === TOKENS
      ? group.flatMap((run) => series.find((one) => one.run === run)?.token_s.slice(1) ?? [])
      : repeats.map(({ value }) => value);
  const average = averageOf(values);
  const box = view.kind === 'boxes' ? boxOf(values) : null;
  const hasInterval = view.kind !== 'boxes' && average !== null && average.margin !== null;
  return {
    ...place,
    mean: average?.mean ?? null,
    low: hasInterval ? average.mean - average.margin! : null,
    high: hasInterval ? average.mean + average.margin! : null,
    box: box && { ...box, count: values.length },
    repeats,
    digests: ids,
    problem: average ? null : `${listed('run', ids)}: no value`,
    note: noteOf(comparison, group, view, repeats.length),
    stale: false,
  };
}

/** Which runs have no place on the y axis because their value is not above 0; '' if all have. */
export function missingText(marks: readonly Mark[], { logY }: View): string {
  const ids = marks
    .filter(({ mean }) => logY && mean !== null && mean <= 0)
    .flatMap(({ digests }) => digests);
  if (ids.length === 0) return '';
  const sorted = ids.toSorted((a, b) => Number(a) - Number(b));
  return `${listed('Run', sorted)}: not above 0, so that a logarithmic axis has no place for the value.`;
}

/** What a mark is: of how many runs that have a value. */
export function captionOf({ kind }: View, marks: readonly Mark[]): string | undefined {
  if (kind === 'boxes') return 'a box is the middle half of the values, its line the median';
  const counts = marks.map(({ repeats }) => repeats.length).filter((count) => count > 0);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (most < 2) return undefined;
  const many = least === most ? most : `${least} to ${most}`;
  return `a mark is the mean of ${many} runs that differ in nothing but the seed, with its 95 % interval`;
}

/** Which runs these are, which of them have no value, and why they cannot simply be compared. */
function noteOf({ runs }: Comparison, group: Repeats, { metric }: View, known: number): string {
  const own = group.map((run) => runs[run]!);
  const names =
    own.length === 1
      ? `Run ${own[0]!.id}: ${own[0]!.name}.`
      : `${listed(
          'Run',
          own.map(({ id }) => String(id)),
        )}.`;
  const lacking =
    metric !== TOKENS && known > 0 && known < own.length
      ? `${own.length - known} of them without a value.`
      : '';
  const cautions = own.flatMap((run) => run.cautions.filter(({ decides }) => decides));
  return [names, lacking, ...new Set(cautions.map(({ sentence }) => sentence))].filter(Boolean).join(' ');
}

/** "run 3", "runs 3, 4 and 5" */
export function listed(noun: string, ids: readonly string[]): string {
  if (ids.length === 1) return `${noun} ${ids[0]}`;
  return `${noun}s ${ids.slice(0, -1).join(', ')} and ${ids.at(-1)}`;
}

const COLUMNS = [
  'metric',
  'unit',
  'x',
  'x value',
  'series',
  'source',
  'n',
  'mean',
  'interval low',
  'interval high',
];
const BOX = ['least', 'lower quartile', 'median', 'upper quartile', 'most'] as const;

/** What the figure shows as rows of a table: one per mark, in SI units. */
export function rowsOf({ data, along }: RunFigure, view: View, { runs }: Comparison): unknown[][] {
  const valueAt = ([id]: readonly string[]) => along?.values[runs.findIndex((run) => String(run.id) === id)];
  const marks = data.facets.flatMap(({ series }) =>
    series.flatMap(({ label, source, marks }) => marks.map((mark) => ({ label, source, mark }))),
  );
  const rows = marks.map(({ label, source, mark: { xText, mean, low, high, box, repeats, digests } }) => [
    view.metric,
    data.y.unit,
    view.x,
    along ? valueAt(digests) : xText,
    label,
    source,
    box?.count ?? repeats.length,
    mean,
    low,
    high,
    ...(box ? [box.least, box.lower, box.median, box.upper, box.most] : BOX.map(() => null)),
    digests.join(' '),
    repeats.map(({ value }) => value).join(' '),
  ]);
  return [[...COLUMNS, ...BOX, 'runs', 'values of the runs'], ...rows];
}
