import { SegmentedControl, Table, UnstyledButton } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { api, sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { Metric, RunRow } from '@/api/types';
import { metricText } from '@/format/metrics';
import { aboutOf, inLists, titleOf } from '@/run/table/columns';
import { type Average, groupsOf, type Statistic, statisticText, STATISTICS } from '@/run/table/groups';
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
      <Table data-testid="run-groups" highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {titles.map((title) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
            <Table.Th ta="right">Runs</Table.Th>
            {figures.map((metric) => (
              <Table.Th key={metric.name} ta="right" title={`${aboutOf(metric)}: ${STATISTICS[statistic]}`}>
                {titleOf(metric)}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {groups.map((group, place) => (
            <Table.Tr key={group.values.join('\n')}>
              {group.values.map((value, at) => (
                <Table.Td key={titles[at]} fw={500}>
                  {value}
                </Table.Td>
              ))}
              <Table.Td ta="right">
                <UnstyledButton
                  className={classes.count}
                  onClick={() => onSelect(new Set(group.runs.map(({ id }) => id)))}
                  title="Select these runs"
                >
                  {group.runs.length}
                </UnstyledButton>
              </Table.Td>
              {figures.map(({ name, unit }) => (
                <Table.Td key={name} ta="right" style={{ whiteSpace: 'nowrap' }}>
                  <Cell average={averages.data?.[place]?.[name]} statistic={statistic} unit={unit} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
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
