import { Anchor, Button, Group, Text } from '@mantine/core';
import { IconCopy, IconPlus } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { useMayWrite, useSession } from '@/api/queries';
import { isOver, type RunRow } from '@/api/types';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import { useExperiments } from '@/experiment/data/queries';
import { waitText } from '@/run/panels/waiting';
import { StatusBadge } from '@/run/panels/StatusBadge';
import { TourOffer } from '@/tour/TourOffer';
import { DemoRace } from './DemoRace';
import { RecentExperiments } from './RecentExperiments';
import { RecentRuns } from './RecentRuns';
import { Showcases } from './Showcases';
import classes from './start.module.css';

/** What runs and waits, what was last done, and ways to begin something. */
export function Workbench({ runs }: { runs: readonly RunRow[] }) {
  const mayWrite = useMayWrite();
  const me = useSession().data?.user;
  const experiments = useExperiments();
  // The points of an experiment stand under it: it has more of them than people have runs.
  const own = runs.filter(({ experiment }) => experiment === null);
  const last = own.find((run) => run.owner === me) ?? own[0];
  return (
    <Page
      title="Start"
      about="What runs and waits, and what was done last."
      wide
      actions={
        mayWrite && (
          <>
            {last && (
              <Button
                variant="default"
                component={Link}
                to={`/runs/new?from=${last.id}`}
                leftSection={<IconCopy size={16} />}
                title={`${last.id} ${last.name}`}
                data-testid="repeat-last"
              >
                Repeat the last run
              </Button>
            )}
            <Button
              component={Link}
              to="/runs/new"
              leftSection={<IconPlus size={16} />}
              data-testid="start-new-run"
            >
              New run
            </Button>
          </>
        )
      }
    >
      {me && <TourOffer user={me} />}
      <UnderWay runs={runs.filter((run) => !isOver(run.status))} />
      <RecentRuns runs={own.filter((run) => isOver(run.status))} />
      {!experiments.isPending && (
        <>
          <RecentExperiments rows={experiments.data ?? []} />
          <DemoRace />
          <Showcases withDemo />
        </>
      )}
    </Page>
  );
}

/** The runs that are not over, those that run first, with an estimate for those that wait. */
function UnderWay({ runs }: { runs: readonly RunRow[] }) {
  const waits = runs.filter((run) => run.status === 'queued').toSorted((a, b) => placeOf(a) - placeOf(b));
  const runsNow = runs.filter((run) => run.status !== 'queued');
  const about = `${runsNow.length} running, ${waits.length} waiting`;
  return (
    <Panel title="Under way" about={runs.length > 0 && about} testId="under-way" flush={runs.length > 0}>
      {runs.length === 0 ? (
        <Text size="sm" c="dimmed">
          Nothing runs or waits.
        </Text>
      ) : (
        <ul className={classes.list}>
          {[...runsNow, ...waits].map((run) => (
            <li key={run.id} data-testid={`under-way-${run.id}`}>
              <Anchor component={Link} to={`/runs/${run.id}`} size="sm" fw={500}>
                <span className={classes.number}>{run.id}</span> {run.name}
              </Anchor>
              <Group gap="xs" wrap="nowrap">
                <StatusBadge state={run.status} />
                <Text size="sm" c="dimmed">
                  {waitText(run) || run.detail}
                </Text>
              </Group>
              <Text size="sm" c="dimmed" ta="right">
                {run.owner}
              </Text>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

const placeOf = (run: RunRow) => run.queue_position ?? Infinity;
