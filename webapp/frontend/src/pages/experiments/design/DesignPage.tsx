import { Center, Loader } from '@mantine/core';
import { useHistoryState, useSearchParams } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useCatalogue, useClusters, useMayWrite, useRun } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { type Draft, firstCluster, fromRequest, kept } from '@/run/request/draft';
import { type Design, firstDesign, withBestPlanners } from '@/experiment/data/design';
import { useExperiment } from '@/experiment/data/queries';
import { reopened, type Reopened } from '@/experiment/data/reopen';
import { DesignForm } from './DesignForm';

/**
 * The page /experiments/new; `?cluster=ID` starts from a cluster, `?run=ID` from a run, which becomes one point of
 * the experiment, `?from=ID` edits a stored experiment, `&planner=best` with the best plans as more variants. A draft
 * of New run comes in the router's state.
 */
export function DesignPage() {
  const [params] = useSearchParams();
  const state: unknown = useHistoryState();
  const runId = Number(params.get('run')) || 0;
  const clusterId = Number(params.get('cluster')) || null;
  const fromId = Number(params.get('from')) || 0;
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const run = useRun(runId, runId > 0);
  const stored = useExperiment(fromId, fromId > 0);
  const mayWrite = useMayWrite();
  const failed = [clusters, catalogue, run, stored].find((query) => query.isError);
  const ready = clusters.data && catalogue.data && (runId === 0 || run.data) && (fromId === 0 || stored.data);
  const initial = (): Reopened => {
    const strategies = catalogue.data?.strategies ?? [];
    const passed = draftIn(state);
    const fresh = (design: Design): Reopened => ({ design, problem: null });
    if (stored.data?.experiment) {
      const found = reopened(stored.data.experiment, clusters.data ?? [], strategies);
      if (!found.design || params.get('planner') !== 'best') return found;
      return fresh({ ...found.design, methods: withBestPlanners(found.design.methods, strategies) });
    }
    if (stored.data) return { design: null, problem: stored.data.unreadable };
    if (run.data)
      return fresh(firstDesign(fromRequest(run.data.request, run.data.report?.scenario), strategies, true));
    if (passed) return fresh(firstDesign(passed, strategies, true));
    return fresh(
      firstDesign({ cluster_id: firstCluster(clusters.data ?? [], clusterId) }, strategies, false),
    );
  };
  const { design, problem } = ready ? initial() : { design: null, problem: null };
  return (
    <Page
      wide
      title={fromId ? 'Edit the experiment' : 'New experiment'}
      about="Vary what you like; the prediction of every point appears at once."
    >
      {!mayWrite ? (
        <EmptyState
          title="You cannot design experiments"
          text="Predicting and emulating needs the role operator: ask an administrator."
        />
      ) : failed ? (
        <ErrorPanel message={sentence(failed.error)} onRetry={() => failed.refetch()} />
      ) : problem !== null ? (
        <ErrorPanel message={problem} />
      ) : design ? (
        <DesignForm
          key={`${fromId} ${runId} ${clusterId}`}
          initial={design}
          stored={stored.data ?? null}
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
  const { run } = (state ?? {}) as { run?: unknown };
  return typeof run === 'object' && run !== null ? kept(run) : null;
}
