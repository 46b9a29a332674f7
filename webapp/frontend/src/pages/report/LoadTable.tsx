import { Group, Text } from '@mantine/core';
import { useTitles } from '@/api/queries';
import type { RunReport } from '@/api/types';
import { DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { maybe, seconds } from '@/format/units';

type Load = NonNullable<RunReport['load']>;
type Percentiles = NonNullable<Load['queue_s']>;

/** The figure of a request that each row is about. */
const ROWS = [
  { key: 'queue_s', figure: 'queue_s' },
  { key: 'first_token_s', figure: 'ttft_s' },
  { key: 'per_token_s', figure: 'per_token_s' },
  { key: 'answer_s', figure: 'answered_s' },
] as const;
const COLUMNS: { key: keyof Percentiles; label: string }[] = [
  { key: 'mean', label: 'mean' },
  { key: 'p50', label: 'median' },
  { key: 'p95', label: '95 %' },
  { key: 'p99', label: '99 %' },
];

/** What users see whose requests wait for each other: percentiles, throughput, goodput and the queue. */
export function LoadTable({ report }: { report: RunReport }) {
  const title = useTitles('request');
  const { load } = report;
  if (!load) return null;
  const { slo_first_token_s: first, slo_per_token_s: each } = report.spec.workload;
  const objectives = [
    first ? `first token within ${seconds(first)}` : '',
    each ? `${seconds(each)} per later token` : '',
  ].filter(Boolean);
  return (
    <Panel
      title="Load"
      about="Requests that arrive while others are in work, in virtual time"
      testId="load-table"
    >
      <Group gap="xl" mb="sm">
        <Fact value={`${load.answered} of ${load.arrived}`} what="requests answered" />
        <Fact value={`${rate(load.answered_per_s)} / s`} what="throughput" />
        {objectives.length > 0 && (
          <Fact
            value={`${rate(load.goodput_per_s)} / s`}
            what={`goodput: ${load.within_objectives} with the ${objectives.join(' and ')}`}
          />
        )}
        <Fact value={rate(load.mean_queue)} what={`waiting on average, ${load.longest_queue} at most`} />
      </Group>
      {load.answered > 0 && (
        <DataTable
          flush
          minWidth={480}
          rows={ROWS.filter(({ key }) => load[key])}
          keyOf={({ key }) => key}
          columns={[
            { head: 'Of all requests', cell: ({ figure }) => title(figure) },
            ...COLUMNS.map(({ key: of, label }) => ({
              head: label,
              right: true,
              cell: ({ key }: (typeof ROWS)[number]) => maybe(load[key]?.[of], seconds),
            })),
          ]}
        />
      )}
    </Panel>
  );
}

function Fact({ value, what }: { value: string; what: string }) {
  return (
    <div>
      <Text fw={600}>{value}</Text>
      <Text size="xs" c="dimmed">
        {what}
      </Text>
    </div>
  );
}

function rate(value: number): string {
  return value.toPrecision(3).replace(/\.?0+$/, '');
}
