import { Anchor, Checkbox, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronUp } from '@tabler/icons-react';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useCallback, useLayoutEffect, useRef, useState } from 'react';
import { Link } from '@/components/navigation';
import type { RunRow } from '@/api/types';
import { useNow } from '@/components/useNow';
import type { ColumnSpec } from '@/run/table/columns';
import { nextSort, type Sort } from '@/run/table/table';
import classes from './runs.module.css';

interface Props {
  runs: readonly RunRow[];
  columns: readonly ColumnSpec[];
  sort: Sort;
  onSort: (sort: Sort) => void;
  selected: ReadonlySet<number>;
  onSelect: (selected: ReadonlySet<number>) => void;
}

const ROW_HEIGHT = 38;
const NAME_WIDTH = 'minmax(170px, 2fr)';

/** The list of runs: sortable columns and a checkbox per run. Only the rows in the window are there. */
export function RunsTable({ runs, columns, sort, onSort, selected, onSelect }: Props) {
  const now = useNow();
  const body = useRef<HTMLDivElement>(null);
  const top = useTop(body);
  // oxlint-disable-next-line react/incompatible-library -- nothing of it is passed on, and nothing is compiled
  const rows = useWindowVirtualizer({
    count: runs.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollMargin: top,
  });
  const all = runs.length > 0 && runs.every((run) => selected.has(run.id));
  const latest = useRef(selected);
  latest.current = selected;
  const toggle = useCallback(
    (id: number) => {
      const next = new Set(latest.current);
      if (!next.delete(id)) next.add(id);
      onSelect(next);
    },
    [onSelect],
  );
  const template = `36px ${NAME_WIDTH} ${columns.map(({ width }) => `minmax(${width}px, 1fr)`).join(' ')}`;
  const least = 36 + 170 + columns.reduce((sum, { width }) => sum + width, 0);
  return (
    <div className={classes.scroll}>
      <div
        role="table"
        aria-rowcount={runs.length + 1}
        aria-label="Runs"
        data-testid="runs"
        style={{ minWidth: least }}
      >
        <div
          role="row"
          aria-rowindex={1}
          className={classes.header}
          style={{ gridTemplateColumns: template }}
        >
          <div role="columnheader" className={classes.cell}>
            <Checkbox
              size="xs"
              aria-label="Select all"
              checked={all}
              indeterminate={!all && selected.size > 0}
              onChange={() => onSelect(all ? new Set() : new Set(runs.map((run) => run.id)))}
            />
          </div>
          <Head title="Run" sortKey="id" sort={sort} onSort={onSort} />
          {columns.map(({ key, title, about, sortable, numeric }) => (
            <Head
              key={key}
              title={title}
              about={about}
              sortKey={sortable ? key : undefined}
              numeric={numeric}
              sort={sort}
              onSort={onSort}
            />
          ))}
        </div>
        <div ref={body} role="rowgroup" className={classes.rows} style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const run = runs[index];
            return (
              run && (
                <Row
                  key={run.id}
                  run={run}
                  index={index}
                  columns={columns}
                  template={template}
                  top={start - top}
                  now={now}
                  selected={selected.has(run.id)}
                  onToggle={toggle}
                />
              )
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** How far below the top of the page an element begins. */
function useTop(ref: React.RefObject<HTMLElement | null>): number {
  const [top, setTop] = useState(0);
  useLayoutEffect(() => {
    const read = () => {
      const box = ref.current?.getBoundingClientRect();
      if (box) setTop(Math.round(box.top + window.scrollY));
    };
    read();
    const observer = new ResizeObserver(read);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [ref]);
  return top;
}

interface RowProps {
  run: RunRow;
  index: number;
  columns: readonly ColumnSpec[];
  template: string;
  top: number;
  now: number;
  selected: boolean;
  onToggle: (id: number) => void;
}

const Row = memo(function Row({ run, index, columns, template, top, now, selected, onToggle }: RowProps) {
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={classes.row}
      data-selected={selected || undefined}
      data-testid={`run-${run.id}`}
      style={{ gridTemplateColumns: template, transform: `translateY(${top}px)`, height: ROW_HEIGHT }}
    >
      <div role="cell" className={classes.cell}>
        <Checkbox
          size="xs"
          aria-label={`Select run ${run.id}`}
          checked={selected}
          onChange={() => onToggle(run.id)}
          data-testid={`select-run-${run.id}`}
        />
      </div>
      <div role="cell" className={classes.cell}>
        <Anchor
          component={Link}
          to={`/runs/${run.id}`}
          size="sm"
          fw={500}
          truncate
          title={run.name}
          data-testid={`open-run-${run.id}`}
        >
          <span className={classes.number}>{run.id}</span> {run.name}
        </Anchor>
      </div>
      {columns.map(({ key, numeric, cell }) => (
        <div role="cell" key={key} className={classes.cell} data-numeric={numeric || undefined}>
          {cell(run, now)}
        </div>
      ))}
    </div>
  );
});

interface HeadProps {
  title: string;
  about?: string | undefined;
  sortKey?: string | undefined;
  numeric?: boolean | undefined;
  sort: Sort;
  onSort: (sort: Sort) => void;
}

function Head({ title, about, sortKey, numeric, sort, onSort }: HeadProps) {
  if (!sortKey)
    return (
      <div role="columnheader" className={classes.cell}>
        {title}
      </div>
    );
  const active = sort.key === sortKey;
  const Arrow = sort.descending ? IconChevronDown : IconChevronUp;
  const arrow = active && <Arrow size={14} style={{ flex: 'none' }} />;
  return (
    <div
      role="columnheader"
      aria-sort={active ? (sort.descending ? 'descending' : 'ascending') : 'none'}
      className={classes.cell}
      data-numeric={numeric || undefined}
    >
      <UnstyledButton
        className={classes.head}
        title={about}
        onClick={() => onSort(nextSort(sort, sortKey))}
        data-testid={`sort-${sortKey}`}
      >
        {numeric && arrow}
        {title}
        {!numeric && arrow}
      </UnstyledButton>
    </div>
  );
}
