import { Anchor, Text, Title } from '@mantine/core';
import { useCallback, useMemo, useState } from 'react';
import type { RunSpec } from '@/api/types';
import type { RunData } from '@/run/data/runData';
import { takeSnapshot } from '@/run/data/snapshot';
import type { ReplayedRun } from '@/run/data/replay';
import { TokenText } from '@/run/panels/TokenText';
import { momentIn, showInAddress } from '@/run/timeline/moment';
import { Viewport } from '@/run/timeline/viewport';
import { Topology, type Selection } from '@/run/topology/Topology';
import { CockpitPanel } from '@/pages/live/cockpit/CockpitPanel';
import { TimePanel } from '@/pages/live/cockpit/TimePanel';
import { useShown } from '@/pages/live/useShown';
import classes from './replay.module.css';

/** A run that is over: its cluster, its text and its time, at any instant; nothing can be changed. */
export function Replay({ run, data }: { run: ReplayedRun; data: RunData }) {
  const dilation = data.report?.dilation ?? 1;
  const [picture] = useState(() => takeSnapshot(data, 1, dilation));
  const [viewport] = useState(() => {
    const made = new Viewport(false);
    made.showInstant(momentIn(location.hash));
    return made;
  });
  const [selection, setSelection] = useState<Selection>(null);
  const store = useMemo(() => ({ data }), [data]);
  const shown = useShown(store, picture, viewport, dilation);
  const now = useCallback(() => data.now_s(0, false), [data]);
  const pick = useCallback(
    (instant_s: number | null) => {
      viewport.showInstant(instant_s);
      showInAddress(instant_s);
    },
    [viewport],
  );
  const { cluster, workload } = run.spec;
  const generates = workload.new_tokens > 0;
  return (
    <main className={classes.page}>
      <header>
        <Title order={1} fz={20}>
          {run.title}
        </Title>
        <Text size="sm" c="dimmed">
          {run.about} ·{' '}
          <Anchor href={run.address} size="sm">
            report
          </Anchor>
        </Text>
      </header>
      <div className={classes.above}>
        <CockpitPanel title="Cluster">
          <Topology
            cluster={cluster}
            drawn={undefined}
            devices={shown.picture.devices}
            links={shown.picture.links}
            still
            selection={selection}
            onSelect={setSelection}
          />
        </CockpitPanel>
        {generates && (
          <TokenText
            spec={run.spec as RunSpec}
            tokens={shown.picture.tokens}
            live={false}
            frame={CockpitPanel}
          />
        )}
      </div>
      <div className={classes.time}>
        <TimePanel
          data={data}
          picture={picture}
          predicted={[]}
          viewport={viewport}
          now={now}
          live={false}
          instant_s={shown.instant_s}
          selection={selection}
          generates={generates}
          onPick={pick}
        />
      </div>
    </main>
  );
}
