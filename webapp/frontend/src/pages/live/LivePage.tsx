import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useClusters } from '@/api/queries';
import { isOver, type RunDetail } from '@/api/types';
import { useDocumentTitle } from '@/components/Page';
import { AllocationView } from '@/run/allocation/AllocationView';
import { LatencyPanel } from '@/run/panels/LatencyPanel';
import { LayerPanel } from '@/run/panels/LayerPanel';
import { Panel } from '@/components/Panel';
import { RecoveryPanel } from '@/run/panels/RecoveryPanel';
import { useRunStore, useSnapshot, type RunStore } from '@/run/feed/store';
import { SpanLegend } from '@/run/timeline/SpanLegend';
import { Timeline } from '@/run/timeline/Timeline';
import { TimelineControls } from '@/run/timeline/TimelineControls';
import { Viewport } from '@/run/timeline/viewport';
import { MethodView } from '@/run/views/MethodView';
import { TokenText } from '@/run/panels/TokenText';
import { Topology, type Selection } from '@/run/topology/Topology';
import { ControlPanel } from './ControlPanel';
import { EventLog } from './EventLog';
import { LiveHeader } from './LiveHeader';
import classes from './live.module.css';

/** The live page of a run: its events as charts, and controls to change or stop it. A reload replays all events. */
export function LivePage({ run }: { run: RunDetail }) {
  const { spec } = run;
  const store = useRunStore(
    run.id,
    spec.cluster,
    spec.model,
    typeof spec.dilation === 'number' ? spec.dilation : 1,
  );
  const picture = useSnapshot(store);
  const clusters = useClusters();
  const { locked } = run;
  const [selection, setSelection] = useState<Selection>(null);
  useDocumentTitle(run.name || `Run ${run.id}`);
  useRefetchAtEnd(run, isOver(picture.state));
  // Use the state from the events, not from the API: more events may follow after the run is over.
  const over = isOver(picture.state);
  const [viewport, now] = useLiveViewport(store, !over);
  const drawn = clusters.data?.find((cluster) => cluster.spec.name === spec.cluster.name)?.layout.positions;
  const plan = picture.plan ?? run.plan;
  const report = picture.report ?? run.report;
  const active = useMemo(() => picture.devices.map((device) => device.activity.layer), [picture.devices]);
  const generates = spec.workload.new_tokens > 0;
  const decoding = picture.tokens.length > 0;
  return (
    <div className={classes.page}>
      <LiveHeader run={run} picture={picture} feed={store.feed} />
      <div className={classes.stage}>
        <Panel title="Cluster" about={spec.cluster.title || spec.cluster.name} flush fill>
          <Topology
            cluster={spec.cluster}
            drawn={drawn}
            devices={picture.devices}
            links={picture.links}
            selection={selection}
            onSelect={setSelection}
          />
        </Panel>
        <ControlPanel
          runId={run.id}
          picture={picture}
          cluster={spec.cluster}
          selection={selection}
          onSelect={setSelection}
          enabled={
            !locked && picture.state === 'running' && store.feed.state === 'live' && !isOver(run.status)
          }
          locked={locked}
        />
      </div>
      <RecoveryPanel
        recoveries={report?.recoveries ?? picture.recoveries}
        without={report?.without_replan ?? null}
        outcome={report?.outcome ?? null}
      />
      {generates && <TokenText spec={spec} tokens={picture.tokens} live={!over} />}
      <div className={generates ? classes.halves : undefined}>
        {generates && <LatencyPanel tokens={picture.tokens} injections={picture.injections} />}
        <LayerPanel prefill={picture.prefillLayers} newest={picture.newestLayers} />
      </div>
      {plan && (
        <AllocationView
          plan={plan}
          model={spec.model}
          devices={picture.devices.map((device) => device.name)}
          active={over ? undefined : active}
          phase={decoding ? 'decode' : 'prefill'}
          made={picture.plans}
          over={over}
        />
      )}
      {plan && (
        <MethodView
          plan={picture.plans.at(-1)?.plan ?? plan}
          model={spec.model}
          devices={spec.cluster.devices}
          data={store.data}
          version={picture.version}
        />
      )}
      <Panel
        title="Timeline"
        testId="timeline-panel"
        about="scroll to zoom, drag to pan"
        extra={<TimelineControls viewport={viewport} now={now} live={!over} />}
      >
        <Timeline
          data={store.data}
          viewport={viewport}
          now={now}
          label="What every device did over virtual time"
        />
        <div className={classes.legend}>
          <SpanLegend />
        </div>
      </Panel>
      <EventLog picture={picture} />
    </div>
  );
}

/** A viewport that follows the run's virtual clock, and that clock, extrapolated between events. */
function useLiveViewport(store: RunStore, live: boolean): [Viewport, () => number] {
  const [viewport] = useState(() => new Viewport(true));
  const now = useCallback(() => store.data.now_s(Date.now(), live), [store, live]);
  return [viewport, now];
}

/** Fetches the run again when its events say that it is over. */
function useRefetchAtEnd(run: RunDetail, ended: boolean) {
  const client = useQueryClient();
  const stale = ended && !isOver(run.status);
  useEffect(() => {
    if (stale) void client.invalidateQueries({ queryKey: ['runs', run.id] });
  }, [client, stale, run.id]);
}
