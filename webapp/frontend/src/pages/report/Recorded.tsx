import { Center, Loader, Text } from '@mantine/core';
import type { UseQueryResult } from '@tanstack/react-query';
import { useCallback, useMemo, useState } from 'react';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { LatencyPanel } from '@/run/panels/LatencyPanel';
import { LayerPanel } from '@/run/panels/LayerPanel';
import { Panel } from '@/components/Panel';
import type { RunData } from '@/run/data/runData';
import { SpanLegend } from '@/run/timeline/SpanLegend';
import { Timeline } from '@/run/timeline/Timeline';
import { TimelineControls } from '@/run/timeline/TimelineControls';
import { Viewport } from '@/run/timeline/viewport';
import classes from './report.module.css';

/** Charts and timeline from the run's stored events. */
export function Recorded({ recording }: { recording: UseQueryResult<RunData> }) {
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
        message={sentence(recording.error)}
        onRetry={() => recording.refetch()}
      />
    );
  }
  return <Charts data={recording.data} />;
}

function Charts({ data }: { data: RunData }) {
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
        about="scroll to zoom, drag to pan"
        testId="timeline-panel"
        extra={<TimelineControls viewport={viewport} now={now} live={false} />}
      >
        <Timeline data={data} viewport={viewport} now={now} label="What every device did over virtual time" />
        <div className={classes.legend}>
          <SpanLegend />
        </div>
      </Panel>
    </>
  );
}
