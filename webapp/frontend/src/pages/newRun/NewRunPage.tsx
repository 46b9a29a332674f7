import { Anchor, Center, Loader } from '@mantine/core';
import { useState } from 'react';
import { useSearchParams } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useCatalogue, useClusters, useMayWrite, useRun, useShowcases } from '@/api/queries';
import type { Showcase, StoredRun } from '@/api/types';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { type Draft, firstCluster, firstDraft, fromRequest } from '@/run/request/draft';
import { forget, remembered } from '@/run/request/remembered';
import { RunForm } from './RunForm';

/** The page /runs/new; `?cluster=ID` preselects a cluster, `?from=ID` copies an earlier run
 * (with `&edit=plan` to change its plan, `&planner=best` for the best one), and `?showcase=NAME&other=NAME` fills in a showcase or a run beside it.
 */
export function NewRunPage() {
  const [params, setParams] = useSearchParams();
  const from = Number(params.get('from')) || 0;
  const requested = Number(params.get('cluster')) || null;
  const wanted = params.get('showcase');
  const other = params.get('other') ?? '';
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const earlier = useRun(from, from > 0);
  const showcases = useShowcases();
  const mayWrite = useMayWrite();
  const showcase = runOf(showcases.data, wanted, other);
  const failed = [clusters, catalogue, earlier, showcases].find((query) => query.isError);
  const [afresh, setAfresh] = useState(0);
  const last = from || showcase || !catalogue.data ? null : remembered(catalogue.data);
  const about = from ? (
    `Copied from run ${from}: change what you like.`
  ) : last ? (
    <>
      As your last run.{' '}
      <Anchor
        component="button"
        size="sm"
        onClick={() => {
          forget();
          setAfresh(afresh + 1);
        }}
        data-testid="start-afresh"
      >
        Begin with the defaults
      </Anchor>
    </>
  ) : (
    'Make your choices, check the prediction, start the run.'
  );
  return (
    <Page title="New run" about={about}>
      {!mayWrite ? (
        <EmptyState
          title="You cannot start runs"
          text="Predicting and starting runs needs the role operator: ask an administrator."
        />
      ) : failed ? (
        <ErrorPanel message={sentence(failed.error)} onRetry={() => failed.refetch()} />
      ) : clusters.data && catalogue.data && showcases.data && (from === 0 || earlier.data) ? (
        <RunForm
          key={`${from} ${requested} ${wanted} ${other} ${afresh}`}
          editsPlan={params.get('edit') === 'plan'}
          showcases={showcases.data}
          showcase={showcase ? { name: wanted ?? '', other } : null}
          onShowcase={(name, beside) => setParams({ showcase: name, ...(beside && { other: beside }) })}
          clusters={clusters.data}
          catalogue={catalogue.data}
          initial={
            earlier.data
              ? copied(earlier.data, params.get('planner') === 'best')
              : showcase
                ? fromRequest(showcase)
                : {
                    ...(last ?? firstDraft(catalogue.data.models)),
                    cluster_id: firstCluster(clusters.data, requested ?? last?.cluster_id ?? null),
                  }
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

/** The draft of an earlier run, with planner=best if that is wanted. */
function copied({ request, report }: StoredRun, best: boolean): Draft {
  const draft = fromRequest(request, report?.scenario);
  if (!best) return draft;
  const own = { ...draft.params[draft.strategy], planner: 'best' };
  return { ...draft, params: { ...draft.params, [draft.strategy]: own } };
}

/** The request of a showcase, or of the run beside it that is called `other`. */
function runOf(showcases: readonly Showcase[] | undefined, name: string | null, other: string) {
  const found = showcases?.find((each) => each.name === name);
  return other ? found?.others.find((each) => each.name === other)?.request : found?.request;
}
