import { SegmentedControl, UnstyledButton } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import { DataTable } from '@/components/DataTable';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { Metric, RunRow } from '@/api/types';
import { metricText } from '@/format/metrics';
import { aboutOf, inLists, titleOf } from '@/run/table/columns';
import {
  type Average,
  type Group,
  groupsOf,
  type Statistic,
  statisticText,
  STATISTICS,
} from '@/run/table/groups';
import classes from './runs.module.css';

interface Props {
  runs: readonly RunRow[];
  metrics: readonly Metric[];
  groupBy: readonly string[];
  titles: readonly string[];
  columns: readonly string[];
  onSelect: (selected: ReadonlySet<number>) => void;
}

/** A row per group of runs: how many, and of every chosen figure the mean with its interval, the median or the extremes. */
export function GroupsTable({ runs, metrics, groupBy, titles, columns, onSelect }: Props) {
  const figures = inLists(metrics).filter(({ name }) => columns.includes(name));
  const [statistic, setStatistic] = useState<Statistic>('mean');
  const groups = groupsOf(runs, groupBy);
  const ids = groups.map((group) => group.runs.map(({ id }) => id));
  const averages = useQuery({
    queryKey: ['runs', 'averages', ids],
    queryFn: ({ signal }) => api.post<Record<string, Average>[]>('/runs/averages', { groups: ids }, signal),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });
  if (averages.isError)
    return <ErrorPanel message={sentence(averages.error)} onRetry={() => averages.refetch()} />;
  return (
    <div className={classes.scroll}>
      <SegmentedControl
        size="xs"
        m={10}
        aria-label="Of every figure"
        value={statistic}
        onChange={(value) => setStatistic(value as Statistic)}
        data={Object.entries(STATISTICS).map(([value, label]) => ({ value, label }))}
        data-testid="group-statistic"
      />
      <DataTable
        data-testid="run-groups"
        highlightOnHover
        rows={groups}
        keyOf={({ values }) => values.join('\n')}
        columns={[
          ...titles.map((title, at) => ({
            head: title,
            look: { fw: 500 },
            cell: ({ values }: Group) => values[at],
          })),
          {
            head: 'Runs',
            right: true,
            cell: (group) => (
              <UnstyledButton
                className={classes.count}
                onClick={() => onSelect(new Set(group.runs.map(({ id }) => id)))}
                title="Select these runs"
              >
                {group.runs.length}
              </UnstyledButton>
            ),
          },
          ...figures.map((metric) => ({
            head: titleOf(metric),
            about: `${aboutOf(metric)}: ${STATISTICS[statistic]}`,
            right: true,
            look: { style: { whiteSpace: 'nowrap' as const } },
            cell: (_: Group, place: number) => (
              <Cell
                average={averages.data?.[place]?.[metric.name]}
                statistic={statistic}
                unit={metric.unit}
              />
            ),
          })),
        ]}
      />
    </div>
  );
}

interface CellProps {
  average: Average | undefined;
  statistic: Statistic;
  unit: string;
}

function Cell({ average, statistic, unit }: CellProps) {
  if (!average) return '–';
  const [main, more] = statisticText(average, statistic, (value) => metricText(value, unit));
  return (
    <span title={`of ${average.count} runs`}>
      {main}
      {more && <span className={classes.margin}>{more}</span>}
    </span>
  );
}
