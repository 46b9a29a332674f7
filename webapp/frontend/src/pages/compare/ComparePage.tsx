import { Anchor, Button, Center, Group, Loader, SegmentedControl, Stack } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { useQueries } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Link, useSearchParams } from '@/components/navigation';
import { api, isMissing, sentence } from '@/api/client';
import { isReadable, type StoredRun } from '@/api/types';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { useOnce } from '@/components/useOnce';
import { seconds } from '@/format/units';
import { LineChart } from '@/run/charts/LineChart';
import { Panel } from '@/components/Panel';
import { seriesColor } from '@/theme/seriesColors';
import { chosenIn, comparedIn, unknownIn, without } from './address';
import { listed } from './cautions';
import { csvOf, latencyColumns, type Comparison } from './comparison';
import { download } from './download';
import { Highlighting, useHighlight } from './highlight';
import { MetricTable } from './MetricTable';
import { ParamTable } from './ParamTable';
import { Placements } from './Placements';
import { useComparison, useRunsFigure } from './queries';
import { RunFigure } from './RunFigure';
import { Stacks } from './Stacks';
import { Timelines } from './Timelines';

/** The most runs that the server compares. */
const MOST = 50;
const token = (index: number) => (Number.isInteger(index) ? String(index) : '');

/** Runs side by side: which parameters differ, and every figure relative to a baseline. */
export function ComparePage() {
  const [params, setParams] = useSearchParams();
  const address = params.toString();
  const { ids, baseline } = useMemo(() => comparedIn(new URLSearchParams(address)), [address]);
  const chosen = useMemo(() => chosenIn(new URLSearchParams(address)), [address]);
  const unknown = useMemo(() => unknownIn(new URLSearchParams(address)), [address]);
  const enough = ids.length >= 2 && ids.length <= MOST;
  const compared = { ids, baseline, enough };
  const comparison = useComparison(compared, params.get('grouped'));
  const figure = useRunsFigure(compared, chosen);
  const isFigureKnown = useOnce(!figure.isPending);
  const details = useQueries({
    queries: (enough ? ids : []).map((id) => ({
      queryKey: ['runs', id],
      queryFn: ({ signal }: { signal: AbortSignal }) => api.get<StoredRun>(`/runs/${id}`, signal),
    })),
  });
  const choose = (choices: Record<string, string>) =>
    setParams((before) => ({ ...Object.fromEntries(before), ...choices }), { replace: true });
  const leaveOut = (gone: readonly number[]) =>
    setParams((before) => without(before, gone), { replace: true });

  if (!enough) {
    return (
      <Page title="Compare">
        <EmptyState
          title={ids.length > MOST ? 'Too many runs' : 'Choose at least two runs'}
          text={`Two to ${MOST} runs with a report can be compared: select them in the list of runs, then press Compare.`}
        >
          <Button component={Link} to="/runs">
            All runs
          </Button>
        </EmptyState>
      </Page>
    );
  }
  if (comparison.isError) {
    const missing = ids.filter((_, at) => isMissing(details[at]?.error));
    return (
      <Page title="Compare">
        <ErrorPanel
          title="These runs cannot be compared"
          message={sentence(comparison.error)}
          onRetry={() => comparison.refetch()}
        />
        {missing.length > 0 && (
          <Group mt="sm">
            <Button size="xs" variant="default" onClick={() => leaveOut(missing)} data-testid="leave-out">
              Leave out {listed('run', missing.map(String))}
            </Button>
          </Group>
        )}
      </Page>
    );
  }
  // The figure stands above all else: shown later, it would move what a person is about to press.
  if (!comparison.data || !isFigureKnown)
    return (
      <Center mih="60vh">
        <Loader type="dots" />
      </Center>
    );
  const data = comparison.data;
  const runs = details
    .map((query) => query.data)
    .filter((run) => run !== undefined)
    .filter(isReadable);
  return (
    <Page
      wide
      title="Compare"
      about={
        <>
          {ids.length} runs ·{' '}
          <Anchor component={Link} to="/runs" size="sm" c="dimmed">
            choose others
          </Anchor>
        </>
      }
      actions={
        <Button
          variant="default"
          leftSection={<IconDownload size={16} />}
          onClick={() => download(csvOf(data), 'comparison.csv')}
          data-testid="export-csv"
        >
          Export CSV
        </Button>
      }
    >
      <Stack gap={14}>
        <Highlighting>
          <RunFigure comparison={data} answer={figure} unknown={unknown} onChoose={choose} />
          <MetricTable
            comparison={data}
            stale={comparison.isPlaceholderData}
            onGrouped={(on) => choose({ grouped: on ? '1' : '0' })}
            onBaseline={(id) => choose({ baseline: String(id) })}
            onRemove={ids.length > 2 ? (id) => leaveOut([id]) : undefined}
          />
          <ParamTable comparison={data} />
          <Latency comparison={data} />
        </Highlighting>
        {runs.length === ids.length && <Stacks runs={runs} />}
        {runs.length === ids.length && <Placements runs={runs} />}
        {runs.length === ids.length && <Timelines runs={runs} />}
      </Stack>
    </Page>
  );
}

function Latency({ comparison }: { comparison: Comparison }) {
  const generated = Math.max(...comparison.series.map((one) => one.token_s.length));
  const [which, setWhich] = useState(generated > 2 ? 'decode' : 'all');
  const { runs } = comparison;
  const lines = useMemo(
    () => runs.map((run, at) => ({ label: `${run.name} (${run.id})`, color: seriesColor(at) })),
    [runs],
  );
  const data = useMemo(
    () => latencyColumns(comparison.series, which === 'decode' ? 1 : 0),
    [comparison, which],
  );
  const { pointed, pinned } = useHighlight();
  const lit = useMemo(
    () => runs.flatMap(({ id }, at) => (pointed.includes(id) || pinned.includes(id) ? [at] : [])),
    [runs, pointed, pinned],
  );
  if (generated === 0) return null;
  return (
    <Panel
      title="Latency per token"
      about="first request of each run"
      testId="compare-latency"
      extra={
        <Group gap="xs">
          <SegmentedControl
            size="xs"
            value={which}
            onChange={setWhich}
            data-testid="latency-which"
            data={[
              { value: 'decode', label: 'After the first' },
              { value: 'all', label: 'All' },
            ]}
          />
        </Group>
      }
    >
      <LineChart
        data={data}
        lines={lines}
        lit={lit}
        xLabel="token"
        formatX={token}
        formatY={seconds}
        height={240}
        label="Latency per token of all runs"
        testId="latency-chart"
      />
    </Panel>
  );
}
