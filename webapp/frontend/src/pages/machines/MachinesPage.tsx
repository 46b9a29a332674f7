import { Alert, Skeleton } from '@mantine/core';
import { sentence } from '@/api/client';
import type { FleetWorker } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { Panel } from '@/components/Panel';
import { useOnce } from '@/components/useOnce';
import { Boards } from './Boards';
import { Models } from './Models';
import { Profiles } from './Profiles';
import { useAddedModels, useBoards, useCalibratedMachines, useFleet } from './queries';
import { QueueTable } from './QueueTable';
import { WorkersTable } from './WorkersTable';

/** The page /machines: every worker, what it does, and the runs that wait for one. */
export function MachinesPage() {
  const query = useFleet();
  const models = useAddedModels();
  const machines = useCalibratedMachines();
  const boards = useBoards();
  // All at once: what came later would move what stands below it.
  const isKnown = useOnce(![query, models, machines, boards].some(({ isPending }) => isPending));
  const { data } = query;
  return (
    <Page
      title="Machines"
      about="The workers of this server, the runs that wait for one, and the boards, models and machines that people added."
      wide
    >
      {query.isError && <ErrorPanel message={sentence(query.error)} onRetry={() => query.refetch()} />}
      {!isKnown && <Skeleton height={280} radius="md" />}
      {isKnown && data && (
        <>
          <Panel
            title="Workers"
            about={`The server's code has the version ${data.version}.${uses(data.uses)}`}
            testId="workers"
            flush
          >
            {data.left_out.map((reason) => (
              <Alert color="red" m="sm" key={reason} data-testid="left-out">
                {reason}
              </Alert>
            ))}
            {[...data.gaps, ...data.elsewhere].map((gap) => (
              <Alert color="yellow" m="sm" key={gap} data-testid="gap">
                {gap}
              </Alert>
            ))}
            <WorkersTable workers={data.workers.map(withoutShown(data.left_out))} version={data.version} />
          </Panel>
          <Panel title="Queue" about="Runs that wait to be emulated." testId="queue" flush>
            <QueueTable queue={data.queue} />
          </Panel>
        </>
      )}
      {isKnown && (
        <>
          <Boards />
          <Models />
          <Profiles />
        </>
      )}
    </Page>
  );
}

const uses = (added: readonly string[]) => (added.length > 0 ? ` It uses ${added.join(', ')}.` : '');

/** A worker without the reasons that stand above all workers already. */
const withoutShown = (shown: readonly string[]) => (worker: FleetWorker) => ({
  ...worker,
  left_out: worker.left_out.filter((reason) => !shown.includes(reason)),
});
