/** What the tracks of the cockpit draw: latency of tokens, use of links and of memory over virtual time. */
import { namedWords } from '@/format/links';
import { percent, seconds } from '@/format/units';
import type { CanvasColors } from '@/run/charts/colors';
import type { PredictedToken } from '@/run/data/progress';
import type { RunData } from '@/run/data/runData';
import type { Series } from '@/run/data/series';
import type { TrackContent } from '@/run/timeline/TrackChart';
import type { TrackLine } from '@/run/timeline/tracks';

interface Point {
  time_s: number;
  latency_s: number;
  index: number;
}

/** The tokens after the first of each request, a line per request (one for requests served together), and the
 * prediction, dashed: made before the start, and after a change from there on. Where every request has one token, these: each took a prompt. */
export function latencyTrack(
  data: RunData,
  predicted: readonly PredictedToken[],
  colors: CanvasColors,
  time_s: number,
): TrackContent {
  const tokens = data.tokens.toArray();
  const least = [...tokens, ...predicted].some((token) => token.index > 0) ? 1 : 0;
  const decoded = tokens.filter((token) => token.index >= least);
  const ghost = predicted.filter((token) => token.index >= least);
  const now = newest(decoded, time_s);
  const then = newest(ghost, time_s);
  return {
    lines: [
      { ...points(ghost, colors.dim), dashed: true },
      { ...points(decoded, colors.text), dots: true, strong: true },
    ],
    values: [
      now ? `token ${now.index}: ${seconds(now.latency_s)}` : 'no token yet',
      ...(then ? [`predicted ${seconds(then.latency_s)}`] : []),
    ],
  };
}

function points(list: readonly Point[], color: string): TrackLine {
  return {
    color,
    length: list.length,
    timeAt: (index) => list[index]!.time_s,
    valueAt: (index) => list[index]!.latency_s,
    beginsAt: (index) => index > 0 && list[index]!.index < list[index - 1]!.index,
  };
}

function newest(list: readonly Point[], time_s: number): Point | undefined {
  return list.findLast((one) => one.time_s <= time_s);
}

/** Share of the set rate that each link uses, in its busier direction; the chosen link stands out. */
export function linkTrack(
  data: RunData,
  chosen: string | null,
  colors: CanvasColors,
  time_s: number,
): TrackContent {
  const lines = data.links
    .toSorted((a, b) => Number(a.name === chosen) - Number(b.name === chosen))
    .map(({ name, use }) => ({
      ...steps(use, name === chosen ? colors.instant : colors.link),
      strong: name === chosen,
    }));
  const named = data.links.map(({ name, use }) => ({ name, value: use.at(time_s, 0) }));
  return { lines, values: describe(named, chosen, 'none in use') };
}

/** Share of its memory that each device uses, in the colour of the device. */
export function memoryTrack(
  data: RunData,
  colorOf: (rank: number) => string,
  chosen: string | null,
  time_s: number,
): TrackContent {
  const lines = data.devices.map(({ name, memory }, rank) => ({
    ...steps(memory, colorOf(rank)),
    strong: name === chosen,
  }));
  const named = data.devices.map(({ name, memory }) => ({ name, value: memory.at(time_s, 0) }));
  return { lines, values: describe(named, chosen, 'nothing loaded yet') };
}

function steps(series: Series, color: string): TrackLine {
  return {
    color,
    step: true,
    length: series.length,
    timeAt: (index) => series.timeAt(index),
    valueAt: (index) => series.valueAt(index),
  };
}

/** The chosen one, or the one with the largest value. */
function describe(
  named: readonly { name: string; value: number }[],
  chosen: string | null,
  nothing: string,
): string[] {
  const one = named.find(({ name }) => name === chosen) ?? named.toSorted((a, b) => b.value - a.value)[0];
  if (!one || (one.value === 0 && one.name !== chosen)) return [nothing];
  return [`${namedWords(one.name)} ${percent(one.value)}`];
}
