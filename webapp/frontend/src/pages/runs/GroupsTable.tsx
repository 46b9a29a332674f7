import { SegmentedControl, Table, UnstyledButton } from '@mantine/core';
import { useState } from 'react';
import type { RunRow } from '@/api/types';
import { FIGURES } from '@/run/table/figures';
import { type Average, groupsOf, type Statistic, statisticText, STATISTICS } from '@/run/table/groups';
import classes from './runs.module.css';

interface Props {
  runs: readonly RunRow[];
  groupBy: readonly string[];
  titles: readonly string[];
  columns: readonly string[];
  onSelect: (selected: ReadonlySet<number>) => void;
}

/** A row per group of runs: how many, and of every chosen figure the mean with its interval, the median or the extremes. */
export function GroupsTable({ runs, groupBy, titles, columns, onSelect }: Props) {
  const figures = FIGURES.filter(({ key }) => columns.includes(key));
  const [statistic, setStatistic] = useState<Statistic>('mean');
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
            <Table.Th ta="right">runs</Table.Th>
            {figures.map(({ key, title, about }) => (
              <Table.Th key={key} ta="right" title={`${about}: ${STATISTICS[statistic]}`}>
                {title}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {groupsOf(runs, groupBy).map((group) => (
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
              {figures.map(({ key, text }) => (
                <Table.Td key={key} ta="right" style={{ whiteSpace: 'nowrap' }}>
                  <Cell average={group.averages[key]} statistic={statistic} text={text} />
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
  text: (value: number) => string;
}

function Cell({ average, statistic, text }: CellProps) {
  if (!average) return '–';
  const [main, more] = statisticText(average, statistic, text);
  return (
    <span title={`of ${average.count} runs`}>
      {main}
      {more && <span className={classes.margin}>{more}</span>}
    </span>
  );
}
