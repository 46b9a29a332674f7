import { Center, Group, Loader, Switch, Text } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { sentence } from '@/api/client';
import type { RunDetail } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { LatencyPanel } from '@/run/panels/LatencyPanel';
import { LayerPanel } from '@/run/panels/LayerPanel';
import { Panel } from '@/components/Panel';
import { criticalPath, type Segment } from '@/run/data/criticalPath';
import type { RunData } from '@/run/data/runData';
import { SpanLegend } from '@/run/timeline/SpanLegend';
import { Timeline } from '@/run/timeline/Timeline';
import { TimelineControls } from '@/run/timeline/TimelineControls';
import { Viewport } from '@/run/timeline/viewport';
import classes from './report.module.css';

/** Charts and timeline from the run's stored events. */
export function Recorded({ run, recording }: { run: RunDetail; recording: UseQueryResult<RunData> }) {
  if (recording.isPending)
    return (
      <Center mih={200}>
        <Loader type="dots" />
      </Center>
    );
  if (recording.isError) {
    return (
      <ErrorPanel
        title="The events could not be read"
        message={`${sentence(recording.error)} Without them this page has no charts of tokens and layers, no timeline and no view of the method; all else is from the report.`}
        onRetry={() => recording.refetch()}
      />
    );
  }
  return <Charts run={run} data={recording.data} />;
}

function Charts({ run, data }: { run: RunDetail; data: RunData }) {
  const [shown, setShown] = useState(false);
  const path = useMemo(() => (shown ? pathOf(run, data) : undefined), [shown, run, data]);
  const [viewport] = useState(() => new Viewport(false));
  const now = useCallback(() => data.time_s, [data]);
  const tokens = useMemo(() => data.tokens.toArray(), [data]);
  if (data.events === 0 || data.time_s === 0) {
    return (
      <Text size="sm" c="dimmed">
        This run ended before any device did anything: there is no timeline.
      </Text>
    );
  }
  return (
    <>
      <div className={tokens.length > 0 ? classes.halves : undefined}>
        {tokens.length > 0 && <LatencyPanel tokens={tokens} injections={data.injections} />}
        <LayerPanel prefill={data.layers.prefill()} newest={data.layers.newest()} />
      </div>
      <Panel
        title="Timeline"
        about={<span data-not-exported>scroll or drag along the axis to zoom, drag to pan</span>}
        testId="timeline-panel"
        extra={
          <Group gap="md" wrap="nowrap">
            {run.report?.outcome.kind === 'finished' && (
              <Switch
                size="xs"
                label="Critical path"
                title="The activities that the end of the run waited for, one after another"
                checked={shown}
                onChange={(event) => setShown(event.currentTarget.checked)}
                data-testid="critical-path"
              />
            )}
            <TimelineControls viewport={viewport} now={now} live={false} />
          </Group>
        }
      >
        <Timeline
          data={data}
          viewport={viewport}
          now={now}
          path={path}
          label="What every device did over virtual time"
        />
        <div className={classes.legend}>
          <SpanLegend />
          {path && (
            <Text size="xs" c="dimmed" data-testid="critical-path-text">
              {aboutPath(path)}
            </Text>
          )}
        </div>
      </Panel>
    </>
  );
}

/** From the first arrival to the end of the last request, as the report's parts of the time are counted. */
function pathOf({ spec, report }: RunDetail, data: RunData): Segment[] {
  const requests = report?.requests ?? [];
  const ends = requests.map((one) => one.arrival_s + (one.answered_s ?? one.token_s.at(-1) ?? 0));
  const source = spec.cluster.devices.findIndex((device) => device.name === spec.cluster.source);
  const start_s = Math.min(...requests.map((one) => one.arrival_s));
  return requests.length === 0 ? [] : criticalPath(data.devices, source, start_s, Math.max(...ends));
}

function aboutPath(path: readonly Segment[]): string {
  const waits = path.filter((piece) => piece.lane === 'wait').length;
  const [activities, times] = [path.length - waits, waits].map((count) => count.toLocaleString('en'));
  const from = path.at(-1) ? ` It is known from ${path.at(-1)!.start_s.toFixed(3)} s on.` : '';
  return (
    `The line goes back from the end of the last request through ${activities} activities and ${times} times in ` +
    `which nothing ended. Only a change of something on the line can make the run shorter.${from}`
  );
}
