import { Center, Group, Loader, Switch, Text } from '@mantine/core';
import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { api, sentence } from '@/api/client';
import type { PathPiece, RunDetail } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { LatencyPanel } from '@/run/panels/LatencyPanel';
import { LayerPanel } from '@/run/panels/LayerPanel';
import { Panel } from '@/components/Panel';
import { seconds } from '@/format/units';
import { SPAN_BUDGET } from '@/run/feed/recording';
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
  const criticalPath = useQuery({
    queryKey: ['runs', run.id, 'critical path'],
    queryFn: ({ signal }) => api.get<PathPiece[]>(`/runs/${run.id}/critical-path`, signal),
    enabled: shown,
    staleTime: Infinity,
  });
  const path = shown ? criticalPath.data : undefined;
  const [viewport] = useState(() => new Viewport(false));
  const now = useCallback(() => data.time_s, [data]);
  const tokens = useMemo(() => data.tokens.toArray(), [data]);
  const prefill = data.layers.prefill();
  if (data.events === 0 || data.time_s === 0) {
    return (
      <Text size="sm" c="dimmed">
        This run ended before any device did anything: there is no timeline.
      </Text>
    );
  }
  return (
    <>
      <div className={tokens.length > 0 && prefill ? classes.halves : undefined}>
        {tokens.length > 0 && <LatencyPanel tokens={tokens} injections={data.injections} />}
        {prefill && <LayerPanel prefill={prefill} newest={data.layers.newest()} />}
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
          {data.keptFrom_s > 0 && (
            <Text size="xs" c="dimmed" data-testid="unkept">
              {`This page keeps the newest ${SPAN_BUDGET.toLocaleString('en')} activities of a run. What is hatched, up to ${seconds(data.keptFrom_s)}, was not kept.`}
            </Text>
          )}
          {shown && criticalPath.isError && (
            <ErrorPanel message={sentence(criticalPath.error)} onRetry={() => criticalPath.refetch()} />
          )}
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

function aboutPath(path: readonly PathPiece[]): string {
  const waits = path.filter((piece) => piece.kind === 'wait').length;
  const [activities, times] = [path.length - waits, waits].map((count) => count.toLocaleString('en'));
  return (
    `The line goes back from the end of the last request through ${activities} activities and ${times} waits. ` +
    `The run gets shorter only if something on this line gets faster.`
  );
}
