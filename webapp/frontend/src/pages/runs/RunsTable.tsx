import { Anchor, Checkbox, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconChevronUp } from '@tabler/icons-react';
import { useWindowVirtualizer } from '@tanstack/react-virtual';
import { memo, useCallback, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Link } from '@/components/navigation';
import type { RunRow } from '@/api/types';
import { useNow } from '@/components/useNow';
import { grouped, toggled } from '@/format/groups';
import type { ColumnSpec } from '@/run/table/columns';
import { folded, type Item } from '@/run/table/fold';
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
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const items = useMemo(() => folded(runs, open), [runs, open]);
  // oxlint-disable-next-line react/incompatible-library -- nothing of it is passed on, and nothing is compiled
  const rows = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollMargin: top,
  });
  const all = runs.length > 0 && runs.every((run) => selected.has(run.id));
  const latest = useRef(selected);
  latest.current = selected;
  const toggle = useCallback((id: number) => onSelect(toggled(latest.current, id)), [onSelect]);
  const template = `36px ${NAME_WIDTH} ${columns.map(({ width }) => `minmax(${width}px, 1fr)`).join(' ')}`;
  const least = 36 + 170 + columns.reduce((sum, { width }) => sum + width, 0);
  return (
    <div className={classes.scroll}>
      <div
        role="table"
        aria-rowcount={items.length + 1}
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
            const item = items[index];
            if (item?.kind === 'points')
              return (
                <PointsRow
                  key={`experiment ${item.id}`}
                  item={item}
                  index={index}
                  top={start - top}
                  isOpen={open.has(item.id)}
                  onOpen={() => setOpen(toggled(open, item.id))}
                  selected={selected}
                  onSelect={onSelect}
                />
              );
            const run = item?.run;
            return (
              run && (
                <Row
                  key={run.id}
                  run={run}
                  isPoint={item.isPoint}
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

interface PointsRowProps {
  item: Extract<Item, { kind: 'points' }>;
  index: number;
  top: number;
  isOpen: boolean;
  onOpen: () => void;
  selected: ReadonlySet<number>;
  onSelect: (selected: ReadonlySet<number>) => void;
}

/** All runs of an experiment in one row, which opens. */
function PointsRow({ item, index, top, isOpen, onOpen, selected, onSelect }: PointsRowProps) {
  const ids = item.runs.map(({ id }) => id);
  const chosen = ids.filter((id) => selected.has(id)).length;
  const states = grouped(item.runs, ({ status }) => status);
  const counts = [...states].map(([state, runs]) => `${runs.length} ${state}`).join(', ');
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className={classes.row}
      data-testid={`points-of-${item.id}`}
      style={{
        gridTemplateColumns: '36px minmax(0, 1fr)',
        transform: `translateY(${top}px)`,
        height: ROW_HEIGHT,
      }}
    >
      <div role="cell" className={classes.cell}>
        <Checkbox
          size="xs"
          aria-label={`Select the runs of ${item.title}`}
          checked={chosen === ids.length}
          indeterminate={chosen > 0 && chosen < ids.length}
          onChange={() => {
            const rest = [...selected].filter((id) => !ids.includes(id));
            onSelect(new Set(chosen === ids.length ? rest : [...rest, ...ids]));
          }}
        />
      </div>
      <div role="cell" className={classes.cell} data-points>
        <UnstyledButton
          className={classes.fold}
          aria-expanded={isOpen}
          onClick={onOpen}
          data-testid={`open-points-of-${item.id}`}
        >
          {isOpen ? <IconChevronDown size={14} /> : <IconChevronRight size={14} />}
          {ids.length} runs of an experiment, {counts}
        </UnstyledButton>
        <Anchor component={Link} to={`/experiments/${item.id}`} size="sm" fw={500}>
          {item.title}
        </Anchor>
      </div>
    </div>
  );
}

interface RowProps {
  run: RunRow;
  /** It stands below its experiment. */
  isPoint: boolean;
  index: number;
  columns: readonly ColumnSpec[];
  template: string;
  top: number;
  now: number;
  selected: boolean;
  onToggle: (id: number) => void;
}

const Row = memo(function Row({
  run,
  isPoint,
  index,
  columns,
  template,
  top,
  now,
  selected,
  onToggle,
}: RowProps) {
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
      <div role="cell" className={classes.cell} data-point={isPoint || undefined}>
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
