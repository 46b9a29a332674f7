import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import { useClusters, useMayWrite } from '@/api/queries';
import { isOver, type RunDetail } from '@/api/types';
import { useDocumentTitle } from '@/components/Page';
import { AllocationView } from '@/run/allocation/AllocationView';
import { predictedAlong, predictedTokens } from '@/run/data/progress';
import type { Snapshot } from '@/run/data/snapshot';
import { useRunStore, useSnapshot, type RunStore } from '@/run/feed/store';
import { LayerPanel } from '@/run/panels/LayerPanel';
import { RecoveryPanel } from '@/run/panels/RecoveryPanel';
import { TokenText } from '@/run/panels/TokenText';
import { changeOf } from '@/run/scenario/changes';
import { momentIn, onMoment, showInAddress } from '@/run/timeline/moment';
import { Viewport } from '@/run/timeline/viewport';
import { Topology, type Selection } from '@/run/topology/Topology';
import { MethodView } from '@/run/views/MethodView';
import { Cockpit } from './cockpit/Cockpit';
import { CockpitPanel } from './cockpit/CockpitPanel';
import { TimePanel } from './cockpit/TimePanel';
import { ControlPanel } from './ControlPanel';
import { dilationOf } from './dilation';
import { EventLog } from './EventLog';
import { isStalled } from './feedHealth';
import { LiveHeader } from './LiveHeader';
import classes from './live.module.css';
import { Recorder } from './recorder/Recorder';
import { ServicePanel } from './service/ServicePanel';
import { useShown, type Shown } from './useShown';

const LOOK_MS = 500;

/** The live page of a run: its events as charts, and controls to change or stop it. */
export function LivePage({ run }: { run: RunDetail }) {
  const { spec } = run;
  const store = useRunStore(run.id, spec, typeof spec.dilation === 'number' ? spec.dilation : 1);
  const newest = useSnapshot(store);
  const clusters = useClusters();
  const mayWrite = useMayWrite();
  const { locked } = run;
  const [selection, setSelection] = useState<Selection>(null);
  useDocumentTitle(run.name || `Run ${run.id}`);
  // Use the state from the events, not from the API: more events may follow after the run is over.
  const over = isOver(newest.state);
  useRefetchAtEnd(run, over);
  const [viewport, now] = useLiveViewport(store, !over);
  const dilation = dilationOf(newest, run);
  const shown = useShown(store, newest, viewport, dilation ?? 1);
  const { picture } = shown;
  const predicted = useMemo(() => predictedTokens(run.prediction), [run.prediction]);
  const { rests } = newest;
  const along = useMemo(() => predictedAlong(predicted, rests), [predicted, rests]);
  const changes = newest.injections.length;
  // The list of marks grows in place: it is another one when it is longer.
  const marks = useMemo(() => store.data.changeMarks.slice(0, changes), [store, changes]);
  const recorded = useMemo(() => marks.flatMap((mark) => changeOf(mark) ?? []), [marks]);
  const pick = useCallback(
    (instant_s: number | null) => {
      viewport.showInstant(instant_s);
      showInAddress(instant_s);
    },
    [viewport],
  );
  const drawn = clusters.data?.find((cluster) => cluster.spec.name === spec.cluster.name)?.layout;
  const generates = spec.workload.new_tokens > 0;
  const serves = spec.workload.pattern === 'serve';
  const isPresent = shown.instant_s === null;
  const isCurrent = useIsCurrent(store, newest);
  return (
    <div className={classes.page}>
      <LiveHeader
        run={run}
        picture={newest}
        predicted={predicted}
        dilation={dilation}
        feed={store.feed}
        onShow={setSelection}
      />
      <Cockpit
        topology={
          <CockpitPanel title="Cluster" about={instantText(shown, over, isCurrent)}>
            <Topology
              cluster={spec.cluster}
              drawn={drawn}
              devices={picture.devices}
              links={picture.links}
              still={!isPresent || !isCurrent}
              selection={selection}
              onSelect={setSelection}
            />
          </CockpitPanel>
        }
        controls={
          <ControlPanel
            runId={run.id}
            picture={picture}
            cluster={spec.cluster}
            selection={selection}
            onSelect={setSelection}
            marks={marks}
            enabled={
              !locked &&
              isPresent &&
              picture.state === 'running' &&
              store.feed.state === 'live' &&
              !isOver(run.status)
            }
            isPresent={isPresent}
            isCurrent={isCurrent}
            locked={locked}
          />
        }
        text={
          serves ? (
            <ServicePanel
              run={run}
              service={shown.data.service}
              version={picture.version}
              open={isPresent && picture.state === 'running' && !isOver(run.status)}
              over={over}
              mayWrite={mayWrite}
            />
          ) : (
            generates && (
              <TokenText spec={spec} tokens={picture.tokens} live={!over && isPresent} frame={CockpitPanel} />
            )
          )
        }
        time={
          <TimePanel
            data={store.data}
            picture={newest}
            predicted={along}
            viewport={viewport}
            now={now}
            live={!over}
            instant_s={shown.instant_s}
            selection={selection}
            generates={generates}
            onPick={pick}
          />
        }
      />
      <Recorder run={run} recorded={recorded} end_s={newest.time_s} mayWrite={mayWrite} />
      <Details run={run} shown={shown} over={over && isPresent} />
    </div>
  );
}

/** What stands below the cockpit: recoveries, allocation, the method's own view, layers, events. */
function Details({ run, shown, over }: { run: RunDetail; shown: Shown; over: boolean }) {
  const { spec } = run;
  const { picture, data } = shown;
  const plan = picture.plan ?? run.plan;
  const report = over ? (picture.report ?? run.report) : null;
  const active = useMemo(() => picture.devices.map((device) => device.activity.layer), [picture.devices]);
  return (
    <>
      <RecoveryPanel
        recoveries={report?.recoveries ?? picture.recoveries}
        without={report?.without_replan ?? null}
        outcome={report?.outcome ?? null}
      />
      {plan && (
        <AllocationView
          plan={plan}
          model={spec.model}
          devices={picture.devices.map((device) => device.name)}
          active={over ? undefined : active}
          phase={picture.tokens.length > 0 ? 'decode' : 'prefill'}
          made={picture.plans}
          over={over}
        />
      )}
      {plan && (
        <MethodView
          plan={picture.plans.at(-1)?.plan ?? plan}
          model={spec.model}
          devices={spec.cluster.devices}
          data={data}
          version={picture.version}
        />
      )}
      <div className={classes.halves}>
        <LayerPanel prefill={picture.prefillLayers} newest={picture.newestLayers} />
        <EventLog picture={picture} />
      </div>
    </>
  );
}

function instantText({ instant_s, picture }: Shown, over: boolean, isCurrent: boolean): string {
  const at_s = instant_s ?? picture.instant_s;
  if (at_s === null) return over ? 'at the end' : '';
  const text = `as it was at ${at_s.toFixed(3)} s`;
  return instant_s === null && !isCurrent ? `${text}; nothing newer is known` : text;
}

/** Whether the newest state of a running run is its present, as far as it can be: events keep coming. */
function useIsCurrent(store: RunStore, newest: Snapshot): boolean {
  const { feed } = store;
  const [stalled, setStalled] = useState(false);
  useEffect(() => {
    const look = () => setStalled(isStalled(feed, store.snapshot().state, Date.now()));
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [store, feed]);
  return newest.state !== 'running' || (feed.state === 'live' && !stalled);
}

/** A viewport that follows the run's virtual clock, and that clock, extrapolated between events. */
function useLiveViewport(store: RunStore, live: boolean): [Viewport, (wall_ms: number) => number] {
  const [viewport] = useState(() => {
    const made = new Viewport(true);
    made.showInstant(momentIn(location.hash));
    return made;
  });
  const now = useCallback((wall_ms: number) => store.data.now_s(wall_ms, live), [store, live]);
  useEffect(() => onMoment((instant_s) => viewport.showInstant(instant_s)), [viewport]);
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
