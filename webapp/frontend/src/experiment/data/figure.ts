/** The server's figure data as the charts draw them. */
import type { FigureData, FigureKind, Series, Source } from '@/experiment/chart/model';
import { metricText } from '@/format/metrics';
import type { FigureAnswer, LineAnswer } from './answers';

/** `runs`: the run behind an emulated point, by its digest. */
export function toFigure(answer: FigureAnswer, runs: ReadonlyMap<string, number> = new Map()): FigureData {
  const { x, y, kind, series, panels } = answer;
  return {
    kind: (kind === 'heatmap' ? 'heat map' : kind) as FigureKind,
    x: { title: x.title, unit: x.unit, log: x.log },
    y: { title: y.title, unit: y.unit, log: y.log },
    labels: series,
    categories: x.categories,
    facets: panels.map(({ label, lines }) => ({
      label,
      series: lines.map((line) => toSeries(line, runs, kind === 'scatter' ? x.unit : null)),
    })),
  };
}

/** `scatter`: the unit of x in a scatter plot, whose spots have labels that are no values of x. */
function toSeries(
  { label, world, spots }: LineAnswer,
  runs: ReadonlyMap<string, number>,
  scatter: string | null,
): Series {
  const source: Source = world;
  return {
    label,
    source,
    marks: spots.map(
      ({ x, x_label, y, low, high, repeats, digests, problem, stale, invalid, left_out, box, note }) => ({
        x,
        xText: scatter !== null && typeof x === 'number' ? metricText(x, scatter) : x_label,
        mean: y,
        low,
        high,
        repeats: repeats.map(({ value, digest }) => ({ value, digest, runId: runs.get(digest) ?? null })),
        leftOut: left_out.map(({ value }) => value),
        digests,
        // The problem of a published value is its place in the paper.
        problem: source === 'published' ? null : problem || null,
        box,
        note: note || noteOf(source, problem, invalid, scatter === null ? '' : x_label),
        stale,
      }),
    ),
  };
}

function noteOf(source: Source, problem: string, invalid: number, point: string): string {
  if (source === 'published') return problem;
  if (invalid > 0)
    return invalid === 1 ? 'One run does not count as valid.' : `${invalid} runs do not count as valid.`;
  return point;
}
