/** The server's figure data as the charts draw them. */
import type { FigureData, Series, Source } from '@/experiment/chart/model';
import type { FigureAnswer, LineAnswer } from './answers';

const SOURCE: Record<LineAnswer['world'], Source> = {
  simulated: 'predicted',
  calculated: 'calculated',
  emulated: 'emulated',
  published: 'published',
};

/** `runs`: the run behind an emulated point, by its digest. */
export function toFigure(answer: FigureAnswer, runs: ReadonlyMap<string, number> = new Map()): FigureData {
  const { x, y, kind, series, panels } = answer;
  return {
    kind: kind === 'heatmap' ? 'heat map' : kind,
    x: { title: x.title, unit: x.unit, log: x.log },
    y: { title: y.title, unit: y.unit, log: y.log },
    labels: series,
    categories: x.categories,
    facets: panels.map(({ label, lines }) => ({ label, series: lines.map((line) => toSeries(line, runs)) })),
  };
}

function toSeries({ label, world, points }: LineAnswer, runs: ReadonlyMap<string, number>): Series {
  return {
    label,
    source: SOURCE[world],
    marks: points.map(({ x, x_label, mean, low, high, repeats, digests, problem, stale }) => ({
      x,
      xText: x_label,
      mean,
      low,
      high,
      repeats: repeats.map(({ value, digest }) => ({ value, digest, runId: runs.get(digest) ?? null })),
      digests,
      problem: problem || null,
      stale,
    })),
  };
}
