import { SegmentedControl } from '@mantine/core';
import { useMemo, useState } from 'react';
import { seconds } from '@/format/units';
import { seriesColor } from '@/theme/seriesColors';
import { LineChart } from '@/run/charts/LineChart';
import chartClasses from '@/run/charts/charts.module.css';
import type { Injection, Token } from '@/run/data/runData';
import { Panel } from '@/components/Panel';
import { latencyColumns, meanDecode_s, requestsOf } from '@/run/data/tokens';

const MAX_LINES = 8;
const HEIGHT = 178;

interface Props {
  tokens: readonly Token[];
  injections: readonly Injection[];
}

/** Seconds per token over virtual time, with a line at every change of the cluster. */
export function LatencyPanel({ tokens, injections }: Props) {
  const [which, setWhich] = useState<'all' | 'decode' | null>(null);
  const decoded = tokens.filter((token) => token.index > 0).length;
  const shown = which ?? (decoded >= 2 ? 'decode' : 'all');
  const requests = useMemo(() => requestsOf(tokens).slice(0, MAX_LINES), [tokens]);
  const data = useMemo(() => latencyColumns(tokens, requests, shown === 'all'), [tokens, requests, shown]);
  const names = requests.length > 1 ? requests.map((request) => `request ${request}`).join('\n') : 'latency';
  const lines = useMemo(
    () => names.split('\n').map((label, at) => ({ label, color: seriesColor(at) })),
    [names],
  );
  const mean = meanDecode_s(tokens);
  return (
    <Panel
      title="Latency per token"
      testId="latency"
      about={Number.isFinite(mean) ? `${seconds(mean)} on average after the first` : undefined}
      extra={
        <SegmentedControl
          size="xs"
          value={shown}
          onChange={(value) => setWhich(value as 'all' | 'decode')}
          data-testid="latency-which"
          data={[
            { value: 'decode', label: 'After the first' },
            { value: 'all', label: 'All' },
          ]}
        />
      }
    >
      {data[0].length === 0 ? (
        <div className={chartClasses.empty} style={{ height: HEIGHT }}>
          No token yet
        </div>
      ) : (
        <LineChart
          data={data}
          lines={lines}
          xLabel="at"
          formatX={seconds}
          formatY={seconds}
          marks={injections}
          height={HEIGHT}
          label="Latency per token over virtual time"
          testId="latency-chart"
        />
      )}
    </Panel>
  );
}
