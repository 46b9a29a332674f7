import { Center, Loader } from '@mantine/core';
import { useLocation, useParams, useSearchParams } from 'react-router';
import { sentence } from '@/api/client';
import { useCatalogue, useClusters, useMayWrite, useRun } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { type Draft, firstCluster, fromRequest } from '@/run/request/draft';
import { type Design, firstDesign } from '@/experiment/data/design';
import { DesignForm } from './DesignForm';

/**
 * The page /experiments/new; `?cluster=ID` starts from a cluster, `?run=ID` from a run, which becomes one point of
 * the experiment. A draft of New run comes in the router's state.
 */
export function DesignPage() {
  const [params] = useSearchParams();
  const { id } = useParams();
  const state: unknown = useLocation().state;
  const runId = Number(params.get('run')) || 0;
  const clusterId = Number(params.get('cluster')) || null;
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const run = useRun(runId, runId > 0);
  const mayWrite = useMayWrite();
  const failed = [clusters, catalogue, run].find((query) => query.isError);
  const ready = clusters.data && catalogue.data && (runId === 0 || run.data);
  const initial = (): Design => {
    const strategies = catalogue.data?.strategies ?? [];
    const passed = draftIn(state);
    if (run.data)
      return firstDesign(fromRequest(run.data.request, run.data.report?.scenario), strategies, true);
    if (passed) return firstDesign(passed, strategies, true);
    return firstDesign({ clusterId: firstCluster(clusters.data ?? [], clusterId) }, strategies, false);
  };
  return (
    <Page
      wide
      title="New experiment"
      about="Vary what you like; the prediction of every point appears at once."
    >
      {!mayWrite ? (
        <EmptyState
          title="You cannot design experiments"
          text="Predicting and emulating needs the role operator: ask an administrator."
        />
      ) : failed ? (
        <ErrorPanel message={sentence(failed.error)} onRetry={() => failed.refetch()} />
      ) : ready ? (
        <DesignForm
          key={`${id} ${runId} ${clusterId}`}
          initial={initial()}
          clusters={clusters.data ?? []}
          catalogue={catalogue.data!}
        />
      ) : (
        <Center mih={300}>
          <Loader type="dots" />
        </Center>
      )}
    </Page>
  );
}

/** The draft that New run passed on, if there is one. */
function draftIn(state: unknown): Draft | null {
  return typeof state === 'object' && state !== null && 'draft' in state ? (state.draft as Draft) : null;
}
