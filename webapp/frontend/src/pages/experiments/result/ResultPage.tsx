import { Center, Group, Loader, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useParams } from '@/components/navigation';
import { isMissing, sentence } from '@/api/client';
import { useMayWrite } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { NotFound } from '@/components/NotFound';
import { Page } from '@/components/Page';
import { useOnce } from '@/components/useOnce';
import type { RowsAnswer, StoredExperiment } from '@/experiment/data/answers';
import { bestDigests } from '@/experiment/data/choose';
import { FIRST_VIEW, type View } from '@/experiment/data/design';
import { useAnalysis, useExperiment, useRows, useTable } from '@/experiment/data/queries';
import { mayUseBoards } from '@/experiment/data/worlds';
import { NotesPanel } from '../NotesPanel';
import { metricText } from '@/format/metrics';
import { ExperimentBadge } from '../ExperimentBadge';
import { useSelection } from '../selection';
import { Actions } from './Actions';
import { BestPlanners } from './BestPlanners';
import { BestTable } from './BestTable';
import { BreakEven } from './BreakEven';
import { Claims } from './Claims';
import { Configuration } from './Configuration';
import { Figures } from './Figures';
import { firstTable, Pivot } from './Pivot';
import { PointsTable } from './PointsTable';
import { ProgressPanel } from './ProgressPanel';
import { PublishedTable } from './PublishedTable';
import { PointActions } from './PointActions';
import { Study } from './Study';
import { WorldsTable } from './WorldsTable';

/** The page /experiments/ID: progress, figures, tables and points of one experiment. */
export function ResultPage() {
  const id = Number(useParams().id);
  const stored = useExperiment(id);
  const rows = useRows(id);
  if (isMissing(stored.error)) return <NotFound />;
  if (stored.isError) {
    return (
      <Page title={`Experiment ${id}`}>
        <ErrorPanel message={sentence(stored.error)} onRetry={() => stored.refetch()} />
      </Page>
    );
  }
  if (!stored.data) {
    return (
      <Center mih="60vh">
        <Loader type="dots" />
      </Center>
    );
  }
  return <Result key={id} stored={stored.data} rows={rows.data} rowsError={rows.error} />;
}

interface Props {
  stored: StoredExperiment;
  rows: RowsAnswer | undefined;
  rowsError: Error | null;
}

function Result({ stored, rows, rowsError }: Props) {
  const { id, experiment } = stored;
  const mayWrite = useMayWrite();
  const selection = useSelection();
  const [view, setView] = useState<View | null>(null);
  const all = rows?.rows ?? [];
  const done = all.filter(({ state }) => state === 'done' || state === 'failed').length;
  // Figures are computed again when points have ended or were computed again.
  const token = `${stored.started_version} ${all.length} ${done} ${stored.stale}`;
  const analysis = useAnalysis(id, token, all.length > 0);
  const metric = view?.metric ?? experiment?.figures[0]?.metric ?? FIRST_VIEW.metric;
  const table = useTable(id, experiment && all.length > 0 ? firstTable(experiment, metric) : null, token);
  // What stands below figure and tables would be moved by them.
  const isSettled = useOnce(!analysis.isPending && !table.isPending);
  const mayChange = stored.may_change && mayWrite;
  const state = rows?.state ?? stored.state;
  const progress = rows?.progress ?? stored.progress;
  const notCounted = Object.values(progress).reduce((sum, world) => sum + world.failed + world.invalid, 0);
  return (
    <Page
      wide
      title={stored.title || stored.name}
      about={
        <Group gap={8} component="span" wrap="nowrap" align="flex-start">
          <ExperimentBadge state={state} notCounted={notCounted} />
          <Text size="sm" component="span">
            {experiment?.description || `${stored.total} rows`}
            {stored.owner && ` · by ${stored.owner}`}
          </Text>
        </Group>
      }
      actions={
        <Actions stored={stored} state={state} mayChange={mayChange} figures={analysis.data?.figures ?? []} />
      }
    >
      <Stack gap={14}>
        {!experiment && <ErrorPanel title="This experiment cannot be read" message={stored.unreadable} />}
        {rowsError && <ErrorPanel title="The points cannot be loaded" message={sentence(rowsError)} />}
        <ProgressPanel stored={stored} progress={progress} state={state} mayChange={mayChange} />
        {experiment && (
          <Study stored={stored} state={state} experiment={experiment} token={token} mayChange={mayChange} />
        )}
        {experiment && all.length === 0 && rows && !stored.study && (
          <EmptyState title="Nothing is computed yet" text="Press Predict to compute all points." />
        )}
        {experiment && all.length > 0 && (
          <>
            {analysis.isError && (
              <ErrorPanel
                title="No figures"
                message={sentence(analysis.error)}
                onRetry={() => analysis.refetch()}
              />
            )}
            {done === all.length && <NotesPanel notes={analysis.data?.notes ?? []} />}
            <Figures
              stored={stored}
              mayChange={mayChange}
              experiment={experiment}
              analysis={analysis.data}
              token={token}
              view={view}
              onView={setView}
              selection={selection}
            />
            {isSettled && (
              <>
                {analysis.data && (
                  <>
                    {analysis.data.figures[0] && (
                      <BreakEven figure={analysis.data.figures[0]} factors={experiment.factors} />
                    )}
                    <Claims claims={analysis.data.claims} />
                    <PublishedTable rows={analysis.data.published} factors={experiment.factors} />
                    <BestTable
                      best={analysis.data.best}
                      factors={experiment.factors}
                      format={(value) => metricText(value, analysis.data?.figures[0]?.y.unit ?? '')}
                      onSelect={() => selection.set(bestDigests(analysis.data?.best ?? [], all))}
                    />
                  </>
                )}
                <Pivot
                  stored={stored}
                  mayChange={mayChange}
                  experiment={experiment}
                  tables={analysis.data?.tables ?? []}
                  metric={metric}
                  token={token}
                />
                <WorldsTable rows={all} experiment={experiment} metric={metric} />
                <PointsTable rows={all} experiment={experiment} selection={selection} />
                {done === all.length && <BestPlanners id={id} token={token} mayChange={mayChange} />}
                <Configuration experiment={experiment} stored={stored} />
              </>
            )}
          </>
        )}
        <PointActions
          id={id}
          rows={all}
          selection={selection}
          mayChange={mayChange}
          hasBoards={experiment ? mayUseBoards(experiment) : false}
        />
      </Stack>
    </Page>
  );
}
