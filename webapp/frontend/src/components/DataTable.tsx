import { Button, Table, type TableProps, type TableTdProps } from '@mantine/core';
import { type Key, type ReactNode, useState } from 'react';
import classes from './DataTable.module.css';

/** One column: what stands at its head, and in each row. */
export interface Column<Row> {
  head: ReactNode;
  cell: (row: Row, at: number) => ReactNode;
  /** Whether it stands at the right, as numbers do. */
  right?: boolean;
  /** Pixels, or a share of the table: "20%". */
  width?: number | string;
  minWidth?: number;
  /** What the pointer is told at the head. */
  about?: string;
  /** How its cells look, but not its head. */
  look?: Pick<TableTdProps, 'c' | 'className' | 'fw' | 'maw' | 'style' | 'ta'>;
  /** The test id of a cell. */
  testId?: (row: Row) => string;
}

interface Props<Row> extends Omit<TableProps, 'children' | 'data'> {
  rows: readonly Row[];
  /** In their order; one that is false is left out. */
  columns: readonly (Column<Row> | false)[];
  keyOf: (row: Row, at: number) => Key;
  /** Of each row. */
  testId?: (row: Row, at: number) => string;
  /** Whether it fills a panel up to its edges: its head is quiet, and its first and last cells keep clear of them. */
  flush?: boolean;
  /** Pixels below which it scrolls to the side; without it, it does not scroll. */
  minWidth?: number;
  /** Pixels above which it scrolls below its head. */
  maxHeight?: number;
  /** How many rows are shown at first, and more on every demand; without it, all. */
  step?: number;
}

/** A list of rows, each with the same columns. */
export function DataTable<Row>({
  rows,
  columns,
  keyOf,
  testId,
  flush = false,
  minWidth,
  maxHeight,
  step = Infinity,
  className = '',
  ...look
}: Props<Row>) {
  const [limit, setLimit] = useState(step);
  const shown = columns.filter((column) => column !== false);
  const table = (
    <Table
      className={flush ? `${classes.flush} ${className}` : className}
      stickyHeader={maxHeight !== undefined}
      {...look}
    >
      <Table.Thead>
        <Table.Tr>
          {shown.map(({ head, right, width, minWidth: least, about }, place) => (
            <Table.Th key={place} ta={right ? 'right' : undefined} w={width} miw={least} title={about}>
              {head}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {rows.slice(0, limit).map((row, at) => (
          <Table.Tr key={keyOf(row, at)} data-testid={testId?.(row, at)}>
            {shown.map(({ cell, right, look: of, testId: cellId }, place) => (
              <Table.Td key={place} ta={right ? 'right' : undefined} data-testid={cellId?.(row)} {...of}>
                {cell(row, at)}
              </Table.Td>
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
  return (
    <>
      {minWidth === undefined ? (
        table
      ) : (
        <Table.ScrollContainer minWidth={minWidth} mah={maxHeight}>
          {table}
        </Table.ScrollContainer>
      )}
      {rows.length > limit && (
        <Button variant="subtle" fullWidth onClick={() => setLimit(limit + step)}>
          Show {Math.min(step, rows.length - limit)} more of {rows.length}
        </Button>
      )}
    </>
  );
}
