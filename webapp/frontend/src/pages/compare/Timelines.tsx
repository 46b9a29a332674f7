import { Center, Group, Loader, NumberInput, SegmentedControl, Text } from '@mantine/core';
import { useQueries } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { sentence } from '@/api/client';
import type { RunDetail } from '@/api/types';
import { Panel } from '@/components/Panel';
import { seconds } from '@/format/units';
import { recordingQuery } from '@/run/feed/recording';
import { compact } from '@/run/timeline/layout';
import { SpanLegend } from '@/run/timeline/SpanLegend';
import { Timeline } from '@/run/timeline/Timeline';
import { TimelineControls } from '@/run/timeline/TimelineControls';
import { shifted, Viewport } from '@/run/timeline/viewport';
import { shifts_s, tokenTime_s } from './alignment';
import classes from './compare.module.css';

/** The timelines of all runs below each other, with one time scale and one cursor, from their starts or aligned at a
 * token. */
export function Timelines({ runs }: { runs: RunDetail[] }) {
  const recordings = useQueries({ queries: runs.map((run) => recordingQuery(run)) });
  const [viewport] = useState(() => new Viewport(false));
  const [token, setToken] = useState<number | null>(null);
  const read = recordings.map((recording) => recording.data);
  const moments = read.map((data) => (data && token !== null ? tokenTime_s(data, token) : null));
  const shifts = shifts_s(moments);
  const longest_s = Math.max(0, ...read.map((data, at) => (data?.time_s ?? 0) - shifts[at]!));
  const now = useCallback(() => longest_s, [longest_s]);
  const most = Math.max(1, ...runs.map((run) => run.spec.workload.new_tokens));
  useEffect(() => {
    if (longest_s > 0) viewport.show('all', longest_s);
  }, [viewport, longest_s]);
  return (
    <Panel
      title="Timelines"
      about="one scale for all; scroll or drag along an axis to zoom, drag to pan"
      testId="timelines"
      extra={
        <Group gap="xs" wrap="nowrap">
          <SegmentedControl
            size="xs"
            aria-label="Where the runs are aligned"
            data-testid="align"
            value={token === null ? 'start' : 'token'}
            onChange={(value) => setToken(value === 'start' ? null : 1)}
            data={[
              { value: 'start', label: 'From the start' },
              { value: 'token', label: 'At a token' },
            ]}
          />
          {token !== null && (
            <NumberInput
              size="xs"
              w={110}
              prefix="token "
              min={1}
              max={most}
              clampBehavior="strict"
              allowDecimal={false}
              value={token}
              onChange={(value) => typeof value === 'number' && value >= 1 && setToken(value)}
              aria-label="The token at which the runs are aligned"
              data-testid="align-token"
            />
          )}
          <TimelineControls viewport={viewport} now={now} live={false} />
        </Group>
      }
    >
      {runs.map((run, at) => {
        const recording = recordings[at];
        return (
          <div key={run.id} className={classes.timeline} data-testid={`timeline-of-${run.id}`}>
            <Text size="sm" fw={600}>
              {run.id} {run.name}{' '}
              <Text span size="xs" c="dimmed">
                {run.strategy}
                {token !== null && recording?.data && ` · ${momentText(token, moments[at] ?? null)}`}
              </Text>
            </Text>
            {recording?.data && (
              <Shifted viewport={viewport} by_s={shifts[at]!}>
                {(own) => (
                  <Timeline
                    data={recording.data}
                    viewport={own}
                    now={now}
                    density={compact}
                    label={`Timeline of ${run.name}`}
                  />
                )}
              </Shifted>
            )}
            {recording?.isPending && (
              <Center h={90}>
                <Loader type="dots" />
              </Center>
            )}
            {recording?.isError && (
              <Text size="sm" c="red">
                {sentence(recording.error)}
              </Text>
            )}
          </div>
        );
      })}
      <SpanLegend />
    </Panel>
  );
}

function momentText(token: number, moment_s: number | null): string {
  return moment_s === null ? `has no token ${token}` : `token ${token} after ${seconds(moment_s)}`;
}

interface ShiftedProps {
  viewport: Viewport;
  by_s: number;
  children: (own: Viewport) => React.ReactNode;
}

/** The shared viewport in the times of one run. */
function Shifted({ viewport, by_s, children }: ShiftedProps) {
  return children(useMemo(() => shifted(viewport, by_s), [viewport, by_s]));
}
