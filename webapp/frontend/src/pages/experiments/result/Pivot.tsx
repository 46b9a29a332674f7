import { Anchor, Button, Group, MultiSelect, Select, Table, Text } from '@mantine/core';
import { useState } from 'react';
import { WORLDS } from '@/api/worlds';
import { useMetrics } from '@/api/queries';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Panel } from '@/components/Panel';
import type { PivotAnswer, StoredExperiment, TableCellAnswer } from '@/experiment/data/answers';
import { exportLink, useTable } from '@/experiment/data/queries';
import type { ExperimentDocument, TableSpec } from '@/experiment/data/types';
import { marginText, metricText } from '@/format/metrics';
import classes from './result.module.css';
import { nameAfter, useKeep } from './useKeep';

interface Props {
  stored: StoredExperiment;
  mayChange: boolean;
  experiment: ExperimentDocument;
  /** The experiment's own tables. */
  tables: readonly PivotAnswer[];
  metric: string;
  token: string;
}

const FORMAT_TEXT: Record<string, string> = { tex: 'LaTeX', csv: 'CSV', parquet: 'Parquet' };

const STATISTICS: TableSpec['statistic'][] = ['mean', 'median', 'min', 'max', 'std', 'interval'];

const STATISTIC_TEXT: Record<string, string> = {
  interval: 'mean ± 95 %',
  min: 'least',
  max: 'largest',
  std: 'standard deviation',
};

/** The table before a person composes another. */
export function firstTable({ factors }: ExperimentDocument, metric: string): TableSpec {
  const names = factors.map(({ name }) => name);
  return {
    name: 'pivot',
    // The best of each row is marked: of each place the best strategy.
    rows: names.length > 1 ? names.slice(1) : ['world'],
    columns: names.slice(0, 1),
    metric,
    statistic: 'interval',
    worlds: [],
  };
}

/** A pivot table: rows × columns × statistic, composed by the person. */
export function Pivot({ stored, mayChange, experiment, tables, metric, token }: Props) {
  const [keep, isKeeping] = useKeep(stored);
  const metrics = useMetrics();
  const names = experiment.factors.map(({ name, title }) => ({ value: name, label: title || name }));
  const [chosen, setChosen] = useState<Partial<TableSpec>>({});
  const table: TableSpec = { ...firstTable(experiment, metric), ...chosen };
  const answer = useTable(stored.id, table.rows.length > 0 ? table : null, token);
  const set = (patch: Partial<TableSpec>) => setChosen({ ...chosen, ...patch });
  const axes = [...names, { value: 'world', label: 'World' }];
  return (
    <>
      {tables.map((own) => (
        <Panel
          key={own.name}
          title={own.title || own.name}
          about={STATISTIC_TEXT[own.statistic] ?? own.statistic}
          flush
          testId={`table-${own.name}`}
        >
          <Cells pivot={own} />
        </Panel>
      ))}
      <Panel
        title="Pivot table"
        testId="pivot"
        flush
        extra={
          <Group gap="sm">
            {mayChange && answer.data && (
              <Button
                size="compact-xs"
                variant="default"
                loading={isKeeping}
                title="Reports and exports have it, too"
                onClick={() => {
                  const title = titleOf(answer.data);
                  keep({ tables: { ...table, name: nameAfter(title, experiment.tables ?? []), title } });
                }}
                data-testid="keep-table"
              >
                Keep this table
              </Button>
            )}
            {['tex', 'csv', 'parquet'].map((format) => (
              <Anchor
                key={format}
                size="xs"
                href={exportLink(stored.id, format, { table: JSON.stringify(table) })}
                download
                data-testid={`pivot-${format}`}
              >
                {FORMAT_TEXT[format]}
              </Anchor>
            ))}
          </Group>
        }
      >
        <Group gap={8} px="md" pt="sm" align="flex-end">
          <Select
            size="xs"
            w={200}
            label="Value"
            allowDeselect={false}
            value={table.metric}
            data={metrics.map(({ name, title }) => ({ value: name, label: title }))}
            onChange={(next) => next && set({ metric: next })}
            data-testid="pivot-metric"
          />
          <Select
            size="xs"
            w={140}
            label="Statistic"
            allowDeselect={false}
            value={table.statistic}
            data={STATISTICS.map((value) => ({ value, label: STATISTIC_TEXT[value] ?? value }))}
            onChange={(next) => next && set({ statistic: next as TableSpec['statistic'] })}
            data-testid="pivot-statistic"
          />
          <Axes
            label="Rows"
            value={table.rows}
            data={axes}
            taken={table.columns}
            onChange={(rows) => set({ rows })}
          />
          <Axes
            label="Columns"
            value={table.columns}
            data={axes}
            taken={table.rows}
            onChange={(columns) => set({ columns })}
          />
          <Select
            size="xs"
            w={120}
            label="World"
            allowDeselect={false}
            value={table.worlds[0] ?? 'all'}
            data={[...WORLDS.filter((world) => world !== 'native'), 'all']}
            onChange={(next) => set({ worlds: WORLDS.filter((world) => world === next) })}
            data-testid="pivot-world"
          />
        </Group>
        <div className={classes.pivot}>
          {answer.isError && <ErrorPanel message={sentence(answer.error)} />}
          {answer.data && !answer.isError && <Cells pivot={answer.data} />}
        </div>
      </Panel>
    </>
  );
}

/** "End-to-end latency by rate of the links". */
const titleOf = ({ quantity, row_titles }: PivotAnswer) =>
  `${quantity} by ${row_titles.map((title) => title.toLowerCase()).join(' and ')}`;

interface AxesProps {
  label: string;
  value: string[];
  data: { value: string; label: string }[];
  taken: readonly string[];
  onChange: (names: string[]) => void;
}

function Axes({ label, value, data, taken, onChange }: AxesProps) {
  return (
    <MultiSelect
      size="xs"
      miw={150}
      label={label}
      value={value}
      data={data.filter((one) => !taken.includes(one.value))}
      onChange={onChange}
      hidePickedOptions
      data-testid={`pivot-${label.toLowerCase()}`}
    />
  );
}

function Cells({ pivot }: { pivot: PivotAnswer }) {
  const { columns, rows, column_titles, row_titles, unit, statistic } = pivot;
  const single = columns.length === 1 && columns[0]?.length === 0;
  return (
    <Table.ScrollContainer minWidth={300} mah={480}>
      <Table className={classes.table} verticalSpacing={6} stickyHeader>
        <Table.Thead>
          {(single ? [''] : column_titles).map((title, level) => (
            <Table.Tr key={title}>
              {row_titles.map((name) =>
                level === column_titles.length - 1 || single ? (
                  <Table.Th key={name}>{name}</Table.Th>
                ) : (
                  <Table.Td key={name} />
                ),
              )}
              {columns.map((headings) => (
                <Table.Th key={headings.join('/')} ta="right">
                  {single ? pivot.quantity : headings[level]}
                </Table.Th>
              ))}
            </Table.Tr>
          ))}
        </Table.Thead>
        <Table.Tbody>
          {rows.map(({ headings, cells }) => (
            <Table.Tr key={headings.join('/')}>
              {headings.map((heading, at) => (
                <Table.Th key={row_titles[at] ?? at} scope="row">
                  {heading}
                </Table.Th>
              ))}
              {cells.map((cell, at) => (
                <Table.Td key={columns[at]?.join('/') ?? at} ta="right" fw={cell?.best ? 600 : undefined}>
                  <Cell cell={cell} unit={unit} statistic={statistic} />
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function Cell({ cell, unit, statistic }: { cell: TableCellAnswer | null; unit: string; statistic: string }) {
  if (cell === null) return null;
  if (cell.value === null) {
    return (
      <Text span size="xs" c="dimmed" title={cell.problem}>
        {cell.invalid > 0 ? 'not valid' : cell.problem ? 'none' : '–'}
      </Text>
    );
  }
  const inUnit = (value: number) => metricText(value, unit);
  const margin =
    statistic === 'interval' && cell.low !== null && cell.high !== null ? (cell.high - cell.low) / 2 : null;
  return (
    <span title={countText(cell)}>
      {inUnit(cell.value)}
      {margin !== null && marginText(margin, inUnit)}
    </span>
  );
}

function countText({ number, invalid }: TableCellAnswer): string {
  const rest = invalid > 0 ? `, ${invalid} more not valid and left out` : '';
  return `${number} ${number === 1 ? 'run' : 'runs'}${rest}`;
}
