import { Group, Tooltip } from '@mantine/core';
import type { RunDetail } from '@/api/types';
import { duration, maybe, seconds, signedPercent, three } from '@/format/units';
import { progressOf, type PredictedToken } from '@/run/data/progress';
import type { Snapshot } from '@/run/data/snapshot';
import classes from './live.module.css';

interface Props {
  run: RunDetail;
  picture: Snapshot;
  predicted: readonly PredictedToken[];
  dilation: number | null;
  over: boolean;
}

interface Figure {
  id: string;
  label: string;
  value: string;
  about: string;
}

/** How far the run is and how fast; before it starts, how long it will take. */
export function Figures(props: Props) {
  return (
    <Group gap="4px 22px" justify="flex-end">
      {figuresOf(props).map(({ id, label, value, about }) => (
        <Tooltip key={id} label={about} multiline maw={280}>
          <div className={classes.figure}>
            <span className={classes.figureLabel}>{label}</span>
            <span className={classes.figureValue} data-testid={id}>
              {value}
            </span>
          </div>
        </Tooltip>
      ))}
    </Group>
  );
}

function figuresOf({ run, picture, predicted, dilation, over }: Props): Figure[] {
  const { workload } = run.spec;
  const expected = workload.new_tokens * workload.requests;
  const progress = progressOf(
    picture.tokens,
    predicted,
    picture.rests,
    picture.injections,
    expected,
    picture.time_s,
    dilation,
  );
  const serves = workload.pattern === 'serve'; // nobody knows how many tokens there will be
  const figures: (Figure | false)[] = [
    workload.new_tokens > 0 && {
      id: 'tokens-per-s',
      label: 'tokens/s',
      value: maybe(serves ? ratePer_s(picture) : progress.tokensPer_s, three),
      about: serves
        ? 'Tokens of all answers per second of virtual time in which somebody waited for one'
        : 'Tokens per second of virtual time, from the start of the run',
    },
    workload.new_tokens > 0 && {
      id: 'first-token',
      label: 'first token',
      value: maybe(progress.firstToken_s, seconds),
      about: 'From the arrival of the first request to its first token, in virtual time',
    },
    workload.new_tokens > 0 &&
      !serves && {
        id: 'against-prediction',
        label: 'against prediction',
        value: maybe(progress.againstPrediction, (ratio) => signedPercent(ratio - 1)),
        about: 'The time of the newest token, compared with what was predicted before the start',
      },
    !over &&
      !serves && {
        id: 'time-left',
        label: picture.time_s > 0 ? 'left' : 'will take',
        value: leftText(progress.left_s, progress.wallLeft_s, dilation),
        about:
          'Virtual time and real time that are left, by the newest prediction: each change brings a new one',
      },
    {
      id: 'virtual-clock',
      label: 'virtual time',
      value: `${picture.time_s.toFixed(2)} s`,
      about: 'Seconds that have passed for the emulated cluster',
    },
    {
      id: 'dilation',
      label: 'dilation D',
      value: dilation === null ? 'auto' : `${three(dilation)}×`,
      about: 'Seconds on the clock per second of virtual time',
    },
    {
      id: 'event-count',
      label: 'events',
      value: picture.events.toLocaleString('en'),
      about: 'Events of this run that have arrived here',
    },
  ];
  return figures.filter((figure) => figure !== false);
}

function ratePer_s({ tokens, busy_s }: Snapshot): number | null {
  return tokens.length > 0 && busy_s > 0 ? tokens.length / busy_s : null;
}

/** "1.2 s, 30 s at 25×": what is left of virtual time, and on the clock. */
function leftText(left_s: number | null, wall_s: number | null, dilation: number | null): string {
  if (left_s === null) return '–';
  if (wall_s === null || dilation === null) return seconds(left_s);
  return `${seconds(left_s)}, about ${duration(wall_s)} at ${three(dilation)}×`;
}
