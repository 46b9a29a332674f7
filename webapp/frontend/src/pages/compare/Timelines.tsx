import { Center, Loader, Text } from '@mantine/core';
import { useQueries } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { sentence } from '@/api/client';
import type { RunDetail } from '@/api/types';
import { Panel } from '@/components/Panel';
import { recordingQuery } from '@/run/feed/recording';
import { compact } from '@/run/timeline/layout';
import { SpanLegend } from '@/run/timeline/SpanLegend';
import { Timeline } from '@/run/timeline/Timeline';
import { TimelineControls } from '@/run/timeline/TimelineControls';
import { Viewport } from '@/run/timeline/viewport';
import classes from './compare.module.css';

/** The timelines of all runs below each other, with one time scale and one cursor. */
export function Timelines({ runs }: { runs: RunDetail[] }) {
  const recordings = useQueries({ queries: runs.map((run) => recordingQuery(run)) });
  const [viewport] = useState(() => new Viewport(false));
  const longest_s = Math.max(0, ...recordings.map((recording) => recording.data?.time_s ?? 0));
  const now = useCallback(() => longest_s, [longest_s]);
  return (
    <Panel
      title="Timelines"
      about="one scale for all; scroll to zoom, drag to pan"
      testId="timelines"
      extra={<TimelineControls viewport={viewport} now={now} live={false} />}
    >
      {runs.map((run, at) => {
        const recording = recordings[at];
        return (
          <div key={run.id} className={classes.timeline}>
            <Text size="sm" fw={600}>
              {run.id} {run.name}{' '}
              <Text span size="xs" c="dimmed">
                {run.strategy}
              </Text>
            </Text>
            {recording?.data && (
              <Timeline
                data={recording.data}
                viewport={viewport}
                now={now}
                density={compact}
                label={`Timeline of ${run.name}`}
              />
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
