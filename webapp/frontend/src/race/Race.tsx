import { ActionIcon, Button, Group, Loader, Select, Slider, Text } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { type CSSProperties, useState } from 'react';
import { sentence } from '@/api/client';
import { useCatalogue, useChange, useMayWrite } from '@/api/queries';
import type { RunRequest, Showcase } from '@/api/types';
import { useNavigate } from '@/components/navigation';
import { Panel } from '@/components/Panel';
import { fromSlider, SLIDER_MAX, sliderMarks, toSlider } from '@/format/rateScale';
import { rate, seconds, three } from '@/format/units';
import { startRun } from '@/run/request/startRun';
import { usePrediction } from '@/run/request/usePrediction';
import { seriesColor } from '@/theme/seriesColors';
import { type Lane, laneOf, PREDICTED_TOKENS, racing, tokensAt } from './times';
import { useClock } from './useClock';
import classes from './race.module.css';

/** It is faster than most on fast links, and much slower on slow ones. */
const RIVAL = 'megatron';

/**
 * Two methods answer the same question on the same boards, as fast as those would, by prediction: one slider sets the
 * rate of all links and stretches both lanes.
 */
export function Race({ showcase }: { showcase: Showcase }) {
  const { request, answer } = showcase;
  const [methods, setMethods] = useState([request.strategy, RIVAL]);
  const [bit_per_s, setRate] = useState(request.cluster?.links[0]?.bit_per_s ?? 1e8);
  const { prompt: question, new_tokens: newTokens = 1 } = request.workload;
  const slower = typeof request.dilation === 'number' ? request.dilation : 1;
  const [own = '', other = ''] = methods;
  const predictions = [
    usePrediction(racing(request, own, bit_per_s)),
    usePrediction(racing(request, other, bit_per_s)),
  ];
  const lanes = predictions.map(({ data, error }) =>
    data && !error ? laneOf(data.report, newTokens) : null,
  );
  const end_s = Math.max(...lanes.map((lane) => lane?.end_s ?? 0));
  const waiting = predictions.some((each) => each.waiting);
  const { time_s, plays, toggle } = useClock(end_s, 1 / slower, lanes.some(Boolean));
  return (
    <Panel
      title="Race"
      about={`two methods, one slider${question ? `: ${question}` : ''}`}
      testId="race"
      extra={
        <Group gap="sm">
          {waiting && <Loader size="xs" />}
          <ActionIcon
            variant="default"
            onClick={toggle}
            aria-label={plays ? 'Pause the race' : 'Play the race'}
            data-testid="race-play"
          >
            {plays ? <IconPlayerPause size={15} /> : <IconPlayerPlay size={15} />}
          </ActionIcon>
        </Group>
      }
    >
      <div className={classes.race} data-waiting={waiting || undefined}>
        <div className={classes.slider}>
          <Text size="sm" id="race-rate">
            Every link: <b data-testid="race-rate">{rate(bit_per_s)}</b>
          </Text>
          <Slider
            min={0}
            max={SLIDER_MAX}
            step={20}
            value={toSlider(bit_per_s)}
            marks={sliderMarks}
            label={null}
            restrictToMarks={false}
            thumbLabel="Rate of every link"
            onChange={(position) => setRate(fromSlider(position))}
          />
        </div>
        {methods.map((method, at) => (
          <OneLane
            key={at}
            at={at}
            method={method}
            onMethod={(name) => setMethods(methods.map((old, place) => (place === at ? name : old)))}
            lane={lanes[at] ?? null}
            refused={predictions[at]?.error ?? null}
            time_s={time_s}
            end_s={end_s}
            newTokens={newTokens}
            answer={answer}
          />
        ))}
        <Text size="xs" c="dimmed">
          Predicted, not run: the first {PREDICTED_TOKENS} tokens of each method, and the others as fast as
          these. It plays{' '}
          {slower === 1 ? 'as fast as the boards would answer' : `${three(slower)} times slower`}.{' '}
          {answer && 'The words are those of a run of this model.'}
        </Text>
        <RunBoth
          requests={methods.map((method) => ({
            ...racing(request, method, bit_per_s),
            workload: request.workload,
          }))}
        />
      </div>
    </Panel>
  );
}

interface LaneProps {
  at: number;
  method: string;
  onMethod: (name: string) => void;
  lane: Lane | null;
  refused: Error | null;
  time_s: number;
  /** The end of the slower lane: the width of both. */
  end_s: number;
  newTokens: number;
  answer: string;
}

function OneLane({ at, method, onMethod, lane, refused, time_s, end_s, newTokens, answer }: LaneProps) {
  const strategies = useCatalogue().data?.strategies ?? [];
  const share = (part_s: number) => `${(100 * part_s) / end_s}%`;
  const count = lane ? tokensAt(lane, time_s, newTokens) : 0;
  const isThere = count === newTokens;
  return (
    <div
      className={classes.lane}
      style={{ '--method': seriesColor(at) } as CSSProperties}
      data-testid={`lane-${at}`}
    >
      <Group gap="sm" justify="space-between" wrap="nowrap">
        <Select
          size="xs"
          w={280}
          value={method}
          onChange={(name) => name && onMethod(name)}
          data={strategies.map(({ name, title }) => ({ value: name, label: `${name}: ${title}` }))}
          allowDeselect={false}
          aria-label={at === 0 ? 'First method' : 'Second method'}
          data-testid={`lane-method-${at}`}
        />
        {lane && (
          <Text size="sm" ta="right" data-testid={`lane-time-${at}`}>
            {count} of {newTokens} tokens · {seconds(lane.each_s)} each ·{' '}
            <b>{isThere ? `done in ${seconds(lane.end_s)}` : `needs ${seconds(lane.end_s)}`}</b>
          </Text>
        )}
      </Group>
      {refused && (
        <Text size="sm" c="dimmed" data-testid={`lane-refused-${at}`}>
          {sentence(refused)}
        </Text>
      )}
      {lane && (
        <>
          <div className={classes.track}>
            <div
              className={classes.prompt}
              style={{ width: share(lane.first_s) }}
              title="reads the question"
            />
            <div
              className={classes.tokens}
              style={{
                left: share(lane.first_s),
                width: share(lane.end_s - lane.first_s),
                backgroundSize: `${100 / Math.max(newTokens - 1, 1)}% 100%`,
              }}
            />
            <div className={classes.veil} style={{ left: share(Math.min(time_s, end_s)) }} />
          </div>
          {answer && (
            <div className={classes.words} aria-live="off">
              <p>
                {answer.slice(0, Math.round((answer.length * count) / newTokens))}
                {!isThere && <span className={classes.caret} />}
              </p>
            </div>
          )}
        </>
      )}
    </div>
  );
}

/** Starts both as real runs: one machine emulates one after the other. */
function RunBoth({ requests }: { requests: readonly RunRequest[] }) {
  const navigate = useNavigate();
  const mayWrite = useMayWrite();
  const start = useChange('runs', async (both: readonly RunRequest[]) => {
    const ids: number[] = [];
    for (const each of both) ids.push((await startRun(each)).id);
    return ids;
  });
  if (!mayWrite) return null;
  return (
    <Group gap="sm">
      <Button
        size="xs"
        variant="default"
        leftSection={<IconPlayerPlay size={15} />}
        loading={start.isPending || start.isSuccess}
        onClick={() => start.mutate(requests, { onSuccess: ([first]) => navigate(`/runs/${first}`) })}
        data-testid="race-run-both"
      >
        Run both
      </Button>
      <Text size="xs" c="dimmed">
        {start.error
          ? sentence(start.error)
          : 'On emulated boards, one after the other. Runs compares them afterwards.'}
      </Text>
    </Group>
  );
}
