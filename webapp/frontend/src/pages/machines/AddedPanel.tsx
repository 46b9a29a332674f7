import { ActionIcon, Text, Tooltip, VisuallyHidden } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconTrash } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { api, sentence } from '@/api/client';
import { useChange, useMayWrite } from '@/api/queries';
import { type Column, DataTable } from '@/components/DataTable';
import { Panel } from '@/components/Panel';
import { useConfirm } from '@/components/useConfirm';
import classes from './machines.module.css';

interface Kind<Row> {
  title: string;
  about: string;
  testId: string;
  /** A row's test id is this and its name. */
  rowTestId: string;
  /** What is said while there is no row. */
  nothing: string;
  /** The address of all rows: that of one ends with its name. */
  path: string;
  /** The keys of the queries that change when a row is removed. */
  keys: readonly string[];
  /** What removing a row means for others. */
  consequence: string;
  columns: readonly Column<Row>[];
  /** What removing a row is called; without it, Remove. */
  removal?: string;
  /** Whether this person may remove a row; without it, everybody who may write. */
  mayRemove?: (row: Row) => boolean;
}

interface Props<Row> {
  kind: Kind<Row>;
  rows: readonly Row[] | undefined;
  error: Error | null;
  /** At the right of the title. */
  extra?: ReactNode;
  children?: ReactNode;
}

/** What people added to the server, in a table; each row can be removed by those who may. */
export function AddedPanel<Row extends { name: string }>({ kind, rows, error, extra, children }: Props<Row>) {
  return (
    <Panel title={kind.title} about={kind.about} testId={kind.testId} extra={extra} flush>
      {children}
      {rows?.length ? (
        <AddedTable kind={kind} rows={rows} />
      ) : (
        <Text c={error ? 'var(--loom-bad)' : 'dimmed'} size="sm" px="md" py="md">
          {error ? sentence(error) : kind.nothing}
        </Text>
      )}
    </Panel>
  );
}

function AddedTable<Row extends { name: string }>({ kind, rows }: { kind: Kind<Row>; rows: readonly Row[] }) {
  const mayWrite = useMayWrite();
  const { removal = 'Remove', mayRemove = () => mayWrite } = kind;
  const [dialog, ask] = useConfirm();
  const remove = useChange(kind.keys, (name: string) => api.delete<void>(`${kind.path}/${name}`));
  const question = (name: string) => ({
    title: `${removal} ${name}?`,
    text: kind.consequence,
    action: removal,
    onConfirm: () => remove.mutate(name, { onError: refused(name) }),
  });
  return (
    <>
      {dialog}
      <DataTable
        flush
        minWidth={0}
        className={classes.table}
        rows={rows}
        keyOf={({ name }) => name}
        testId={({ name }) => `${kind.rowTestId}-${name}`}
        columns={[
          ...kind.columns,
          {
            head: <VisuallyHidden>Actions</VisuallyHidden>,
            cell: (row) =>
              mayRemove(row) && (
                <Tooltip label={`${removal} ${row.name}`}>
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    aria-label={`${removal} ${row.name}`}
                    onClick={() => ask(question(row.name))}
                  >
                    <IconTrash size={16} />
                  </ActionIcon>
                </Tooltip>
              ),
          },
        ]}
      />
    </>
  );
}

/** Shows the server's refusal until somebody closes it. */
export const refused = (title: string) => (error: Error) =>
  notifications.show({ color: 'red', title, message: sentence(error), autoClose: false });
