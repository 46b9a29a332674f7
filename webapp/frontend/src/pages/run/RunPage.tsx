import { Center, Loader } from '@mantine/core';
import { lazy, Suspense, useEffect, useState } from 'react';
import { useParams, useSearchParams } from '@/components/navigation';
import { isMissing, sentence } from '@/api/client';
import { useRun } from '@/api/queries';
import { isOver, isReadable } from '@/api/types';
import { momentIn, onMoment } from '@/run/timeline/moment';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { NotFound } from '@/components/NotFound';
import { LivePage } from '../live/LivePage';
import { useWasWatched } from './useWasWatched';

const ReportPage = lazy(async () => ({ default: (await import('../report/ReportPage')).ReportPage }));

/** The page /runs/:id: the live page until the run is over, then the report; `?view=live` shows the recording. */
export function RunPage() {
  const id = Number(useParams().id);
  const [params] = useSearchParams();
  const run = useRun(id);
  const watched = useWasWatched(id, run.data?.status);
  const [isAtMoment, setAtMoment] = useState(() => momentIn(location.hash) !== null);
  useEffect(() => onMoment(() => setAtMoment(true)), []);
  if (isMissing(run.error)) return <NotFound />;
  if (run.isPending) return <Waiting />;
  if (!run.data) {
    return (
      <Page title="Run">
        <ErrorPanel message={sentence(run.error)} onRetry={() => run.refetch()} />
      </Page>
    );
  }
  if (!isReadable(run.data)) {
    return (
      <Page title={run.data.name}>
        <ErrorPanel title="This run cannot be shown" message={run.data.problems.join(' ')} />
      </Page>
    );
  }
  const view = params.get('view') ?? (isOver(run.data.status) && !watched && !isAtMoment ? 'report' : 'live');
  if (view === 'live') return <LivePage key={id} run={run.data} />;
  return (
    <Suspense fallback={<Waiting />}>
      <ReportPage key={id} run={run.data} />
    </Suspense>
  );
}

function Waiting() {
  return (
    <Center mih="60vh">
      <Loader type="dots" />
    </Center>
  );
}
