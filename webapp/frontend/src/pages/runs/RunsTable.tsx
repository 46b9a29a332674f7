import { Anchor, Button, Checkbox, Table, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react';
import { useState } from 'react';
import { Link } from 'react-router';
import type { RunRow } from '@/api/types';
import { useNow } from '@/components/useNow';
import type { ColumnSpec } from '@/run/table/columns';
import classes from './runs.module.css';
import { nextSort, type Sort, type SortKey } from '@/run/table/table';

interface Props {
  runs: readonly RunRow[];
  columns: readonly ColumnSpec[];
  sort: Sort;
  onSort: (sort: Sort) => void;
  selected: ReadonlySet<number>;
  onSelect: (selected: ReadonlySet<number>) => void;
}

const STEP = 100;

/** The list of runs: sortable columns and a checkbox per run. */
export function RunsTable({ runs, columns, sort, onSort, selected, onSelect }: Props) {
  const now = useNow();
  const [limit, setLimit] = useState(STEP);
  const visible = runs.slice(0, limit);
  const all = visible.length > 0 && visible.every((run) => selected.has(run.id));
  const toggle = (id: number) => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    onSelect(next);
  };
  return (
    <div className={classes.scroll}>
      <Table highlightOnHover data-testid="runs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={36}>
              <Checkbox
                size="xs"
                aria-label="Select all"
                checked={all}
                indeterminate={!all && selected.size > 0}
                onChange={() => onSelect(all ? new Set() : new Set(visible.map((run) => run.id)))}
              />
            </Table.Th>
            <Head title="Run" sortKey="id" sort={sort} onSort={onSort} />
            {columns.map(({ key, title, sort: sortKey, numeric }) => (
              <Head key={key} title={title} sortKey={sortKey} numeric={numeric} sort={sort} onSort={onSort} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {visible.map((run) => (
            <Table.Tr
              key={run.id}
              data-testid={`run-${run.id}`}
              bg={
                selected.has(run.id)
                  ? 'color-mix(in srgb, var(--mantine-primary-color-filled) 8%, transparent)'
                  : undefined
              }
            >
              <Table.Td>
                <Checkbox
                  size="xs"
                  aria-label={`Select run ${run.id}`}
                  checked={selected.has(run.id)}
                  onChange={() => toggle(run.id)}
                  data-testid={`select-run-${run.id}`}
                />
              </Table.Td>
              <Table.Td className={classes.name}>
                <Anchor
                  component={Link}
                  to={`/runs/${run.id}`}
                  size="sm"
                  fw={500}
                  data-testid={`open-run-${run.id}`}
                >
                  <span className={classes.number}>{run.id}</span> {run.name}
                </Anchor>
              </Table.Td>
              {columns.map(({ key, numeric, cell }) => (
                <Table.Td key={key} ta={numeric ? 'right' : undefined} style={{ whiteSpace: 'nowrap' }}>
                  {cell(run, now)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {runs.length > limit && (
        <Button variant="subtle" fullWidth onClick={() => setLimit(limit + STEP)}>
          Show {Math.min(STEP, runs.length - limit)} more of {runs.length}
        </Button>
      )}
    </div>
  );
}

interface HeadProps {
  title: string;
  sortKey?: SortKey;
  numeric?: boolean;
  sort: Sort;
  onSort: (sort: Sort) => void;
}

function Head({ title, sortKey, numeric, sort, onSort }: HeadProps) {
  if (!sortKey)
    return (
      <Table.Th>
        <span className={classes.head}>{title}</span>
      </Table.Th>
    );
  const active = sort.key === sortKey;
  const Arrow = sort.descending ? IconChevronDown : IconChevronUp;
  const arrow = <Arrow size={14} style={{ opacity: active ? 1 : 0 }} />;
  return (
    <Table.Th
      aria-sort={active ? (sort.descending ? 'descending' : 'ascending') : 'none'}
      ta={numeric ? 'right' : undefined}
    >
      <UnstyledButton
        className={classes.head}
        onClick={() => onSort(nextSort(sort, sortKey))}
        data-testid={`sort-${sortKey}`}
      >
        {numeric && arrow}
        {title}
        {!numeric && arrow}
      </UnstyledButton>
    </Table.Th>
  );
}
