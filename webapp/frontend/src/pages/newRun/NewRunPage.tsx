import { Center, Loader } from '@mantine/core';
import { useSearchParams } from 'react-router';
import { sentence } from '@/api/client';
import { useCatalogue, useClusters, useMayWrite, useRun } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { FIRST_DRAFT, firstCluster, fromRequest } from '@/run/request/draft';
import { RunForm } from './RunForm';

/** The page /runs/new; `?cluster=ID` preselects a cluster, `?from=ID` copies an earlier run. */
export function NewRunPage() {
  const [params] = useSearchParams();
  const from = Number(params.get('from')) || 0;
  const requested = Number(params.get('cluster')) || null;
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const earlier = useRun(from, from > 0);
  const mayWrite = useMayWrite();
  const failed = [clusters, catalogue, earlier].find((query) => query.isError);
  const about = from
    ? `Copied from run ${from}: change what you like.`
    : 'Make your choices, check the prediction, start the run.';
  return (
    <Page title="New run" about={about}>
      {!mayWrite ? (
        <EmptyState
          title="You cannot start runs"
          text="Predicting and starting runs needs the role operator: ask an administrator."
        />
      ) : failed ? (
        <ErrorPanel message={sentence(failed.error)} onRetry={() => failed.refetch()} />
      ) : clusters.data && catalogue.data && (from === 0 || earlier.data) ? (
        <RunForm
          key={`${from} ${requested}`}
          clusters={clusters.data}
          catalogue={catalogue.data}
          initial={
            earlier.data
              ? fromRequest(earlier.data.request, earlier.data.report?.scenario)
              : { ...FIRST_DRAFT, clusterId: firstCluster(clusters.data, requested) }
          }
        />
      ) : (
        <Center mih={300}>
          <Loader type="dots" />
        </Center>
      )}
    </Page>
  );
}
