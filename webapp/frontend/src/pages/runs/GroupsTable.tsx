import { Table, UnstyledButton } from '@mantine/core';
import type { RunRow } from '@/api/types';
import { FIGURES } from '@/run/table/figures';
import { type Average, groupsOf } from '@/run/table/groups';
import classes from './runs.module.css';

interface Props {
  runs: readonly RunRow[];
  groupBy: readonly string[];
  titles: readonly string[];
  columns: readonly string[];
  onSelect: (selected: ReadonlySet<number>) => void;
}

/** A row per group of runs: how many, and of every chosen figure the mean with its 95 % confidence interval. */
export function GroupsTable({ runs, groupBy, titles, columns, onSelect }: Props) {
  const figures = FIGURES.filter(({ key }) => columns.includes(key));
  return (
    <div className={classes.scroll}>
      <Table data-testid="run-groups" highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {titles.map((title) => (
              <Table.Th key={title}>{title}</Table.Th>
            ))}
            <Table.Th ta="right">runs</Table.Th>
            {figures.map(({ key, title, about }) => (
              <Table.Th key={key} ta="right" title={`${about}: mean ± 95 % interval`}>
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
                  <AverageText average={group.averages[key]} text={text} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

function AverageText({ average, text }: { average: Average | undefined; text: (value: number) => string }) {
  if (!average) return '–';
  return (
    <span title={`mean of ${average.count}`}>
      {text(average.mean)}
      {average.margin !== null && <span className={classes.margin}> ± {text(average.margin)}</span>}
    </span>
  );
}
