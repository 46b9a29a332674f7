import { Anchor, Button, Group, Menu, Stack, Text } from '@mantine/core';
import { IconActivity, IconArrowsShuffle, IconCopy, IconFlask, IconRoute } from '@tabler/icons-react';
import { useRef } from 'react';
import { Link } from '@/components/navigation';
import { useMayWrite } from '@/api/queries';
import type { RunDetail } from '@/api/types';
import { Page } from '@/components/Page';
import { useOnce } from '@/components/useOnce';
import { AllocationView } from '@/run/allocation/AllocationView';
import { RecoveryPanel } from '@/run/panels/RecoveryPanel';
import { StatusBadge } from '@/run/panels/StatusBadge';
import { useRecording } from '@/run/feed/recording';
import { aloneText } from '@/run/data/alone';
import { modelText } from '@/run/data/modelText';
import { MethodView } from '@/run/views/MethodView';
import { Attribution } from './Attribution';
import { Contents } from './Contents';
import { DeviceTable } from './DeviceTable';
import { ExportMenu } from './ExportMenu';
import { FindingPanel } from './FindingPanel';
import { Frozen } from './Frozen';
import { Happened } from './Happened';
import { KeyFigures } from './KeyFigures';
import { LinkTable } from './LinkTable';
import { LoadTable } from './LoadTable';
import { LoadingTable } from './LoadingTable';
import { Notes } from './Notes';
import { NativeTable } from './NativeTable';
import { OutcomeAlert } from './OutcomeAlert';
import { PairTable } from './PairTable';
import { Recorded } from './Recorded';
import { ReplayButton } from './ReplayButton';
import { ReportText } from './ReportText';
import classes from './report.module.css';
import { Seen } from './Seen';
import { Unreadable } from './Unreadable';
import { Verdicts } from './Verdicts';

/** The report page of a run. */
export function ReportPage({ run }: { run: RunDetail }) {
  const mayWrite = useMayWrite();
  const recording = useRecording(run);
  // What stands below the charts of the recording would be moved by them.
  const isRead = useOnce(!recording.isPending);
  const body = useRef<HTMLDivElement>(null);
  const { report, spec } = run;
  const plan = recording.data?.planInForce ?? report?.plan ?? run.plan;
  const title = run.name || `Run ${run.id}`;
  const alone = spec ? aloneText(spec.cluster, report?.plan ?? run.plan) : '';
  const about = `${run.strategy}${alone && ` (${alone})`} · ${modelText(run)} on ${run.cluster_name} · ${when(run)}`;
  return (
    <Page
      wide
      title={title}
      about={
        <Group gap={8} component="span">
          <StatusBadge state={run.status} />
          <Text size="sm" component="span">
            {about} ·{' '}
            <Anchor component={Link} to="/runs" size="sm" c="dimmed">
              all runs
            </Anchor>
          </Text>
        </Group>
      }
      actions={
        <>
          <Button
            component={Link}
            to="?view=live"
            variant="default"
            leftSection={<IconActivity size={16} />}
            data-testid="open-live"
          >
            Recording
          </Button>
          {mayWrite && <RepeatMenu run={run} />}
          <ExportMenu run={run} title={title} about={about} body={body} lacks={lackOf(recording)} />
          <ReplayButton run={run} enabled={mayWrite} />
        </>
      }
    >
      <Contents of={body} />
      <Stack gap={14} ref={body} className={classes.body}>
        <OutcomeAlert run={run} />
        <Unreadable problems={run.problems} />
        {report && (
          <>
            <FindingPanel run={run} />
            {report.outcome.kind === 'finished' && <KeyFigures run={run} />}
            <Verdicts correctness={report.correctness} fidelity={report.fidelity} />
            <Happened run={run} data={recording.data} />
            <RecoveryPanel
              recoveries={report.recoveries}
              without={report.without_replan}
              outcome={report.outcome}
            />
            <LoadTable report={report} />
            <Attribution report={report} />
            <NativeTable report={report} />
            <PairTable report={report} />
          </>
        )}
        <Seen run={run} />
        <ReportText run={run} data={recording.data} />
        <Recorded run={run} recording={recording} />
        {isRead && (
          <>
            {recording.data?.plans.newest && (
              <MethodView
                plan={recording.data.plans.newest}
                model={spec.model}
                devices={spec.cluster.devices}
                data={recording.data}
                version={0}
              />
            )}
            {plan && (
              <AllocationView
                plan={plan}
                model={spec.model}
                devices={spec.cluster.devices.map((device) => device.name)}
                made={recording.data?.plans.versions}
                over
              />
            )}
            {report && (
              <>
                <LoadingTable report={report} />
                <DeviceTable report={report} />
                <LinkTable report={report} />
              </>
            )}
            <Notes run={run} />
            <Frozen run={run} />
          </>
        )}
      </Stack>
    </Page>
  );
}

/** Why the page lacks charts and timeline; null once the events are there. */
function lackOf({ isPending, isError }: ReturnType<typeof useRecording>): string | null {
  if (isPending) return 'once the events of the run have been read';
  return isError ? 'not now: the events of the run could not be read' : null;
}

/** Ways to the same run with something else in it. */
function RepeatMenu({ run }: { run: RunDetail }) {
  return (
    <Menu position="bottom-end" width={280}>
      <Menu.Target>
        <Button variant="default" leftSection={<IconCopy size={16} />} data-testid="repeat-with-changes">
          Repeat with changes
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          component={Link}
          to={`/runs/new?from=${run.id}`}
          leftSection={<IconCopy size={16} />}
          data-testid="repeat-run"
        >
          New run, filled in as this one
        </Menu.Item>
        {run.report?.with_best_planner_s != null && (
          <Menu.Item
            component={Link}
            to={`/runs/new?from=${run.id}&planner=best`}
            leftSection={<IconRoute size={16} />}
            data-testid="repeat-with-best-planner"
          >
            With planner=best
          </Menu.Item>
        )}
        <Menu.Item
          component={Link}
          to={`/runs/new?from=${run.id}&edit=plan`}
          leftSection={<IconArrowsShuffle size={16} />}
          data-testid="edit-plan"
        >
          Edit its plan
        </Menu.Item>
        <Menu.Item
          component={Link}
          to={`/experiments/new?run=${run.id}`}
          leftSection={<IconFlask size={16} />}
          data-testid="experiment-from-run"
        >
          Vary it in an experiment
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

function when(run: RunDetail): string {
  const at = new Date(run.finished_at ?? run.created_at);
  return at.toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' });
}
