import { Center, Loader } from '@mantine/core';
import { useSearchParams } from 'react-router';
import { sentence } from '@/api/client';
import { useCatalogue, useClusters, useMayWrite, useRun } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { FIRST_DRAFT, firstCluster, fromRequest } from '@/run/request/draft';
import { RunForm } from './RunForm';

/** /runs/new, with `?cluster=ID` to begin with that cluster or `?from=ID` to begin with an earlier run. */
export function NewRunPage() {
  const [params] = useSearchParams();
  const from = Number(params.get('from')) || 0;
  const asked = Number(params.get('cluster')) || null;
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const earlier = useRun(from, from > 0);
  const mayWrite = useMayWrite();
  const failed = [clusters, catalogue, earlier].find((query) => query.isError);
  const about = from
    ? `Begins with what run ${from} did: change what you like.`
    : 'Choose, look at the prediction, start.';
  return (
    <Page title="New run" about={about}>
      {!mayWrite ? (
        <EmptyState
          title="You may look, not start"
          text="Predicting and starting runs needs the role operator: ask an administrator."
        />
      ) : failed ? (
        <ErrorPanel message={sentence(failed.error)} onRetry={() => failed.refetch()} />
      ) : clusters.data && catalogue.data && (from === 0 || earlier.data) ? (
        <RunForm
          key={`${from} ${asked}`}
          clusters={clusters.data}
          catalogue={catalogue.data}
          initial={
            earlier.data
              ? fromRequest(earlier.data.request, earlier.data.report?.scenario)
              : { ...FIRST_DRAFT, clusterId: firstCluster(clusters.data, asked) }
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
