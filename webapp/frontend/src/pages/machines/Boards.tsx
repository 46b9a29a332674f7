import { Badge, Button, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconPlus } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { type ComponentProps, useEffect } from 'react';
import { useMayWrite } from '@/api/queries';
import type { Board } from '@/api/types';
import { useNow } from '@/components/useNow';
import { AddBoard } from './AddBoard';
import { AddedPanel } from './AddedPanel';
import { boardState, boardStateText, ratesText, warmthText } from './board';
import { useBoards } from './queries';
import { memoryText } from './worker';
import classes from './machines.module.css';

const COLORS = { connected: 'green', measuring: 'blue', away: 'gray', expected: 'yellow', lapsed: 'red' };

const BOARDS: ComponentProps<typeof AddedPanel<Board>>['kind'] = {
  title: 'Boards',
  about: 'Your own machines: each measures itself, and the editor offers it as a device.',
  testId: 'boards',
  rowTestId: 'board',
  nothing: 'No board has been added yet.',
  path: '/nodes',
  keys: ['boards', 'catalogue'],
  removal: 'Revoke',
  mayRemove: ({ locked }) => locked === null,
  consequence:
    'Its token is no longer valid, it is disconnected, and the editor offers it no longer. Clusters that use it keep ' +
    'its values.',
  columns: [
    { head: 'Board', cell: (board) => <Who board={board} /> },
    { head: 'State', cell: (board) => <State board={board} /> },
    {
      head: 'Cores and load',
      cell: ({ hello, beat }) => (
        <Text size="sm">
          {hello ? `${hello.cores} ${hello.cores === 1 ? 'core' : 'cores'}` : '–'}
          {beat && `, load ${beat.load_1min.toFixed(1)}`}
        </Text>
      ),
    },
    {
      head: 'Memory free',
      cell: ({ hello, beat }) => (
        <Text size="sm">{hello && beat ? memoryText({ ...hello, ...beat }) : '–'}</Text>
      ),
    },
    { head: 'Temperature and clock', cell: (board) => <Text size="sm">{warmthText(board)}</Text> },
    { head: 'A core, measured', cell: (board) => <Rates board={board} /> },
    { head: 'Versions', cell: ({ hello }) => hello && <Versions hello={hello} /> },
  ],
};

/** Boards that have joined, or may: each is a device that can be drawn. */
export function Boards() {
  const mayWrite = useMayWrite();
  const [adds, { open, close }] = useDisclosure(false);
  const { data, error } = useBoards();
  useFreshPalette(data);
  const button = (
    <Button
      size="xs"
      variant="default"
      leftSection={<IconPlus size={14} />}
      onClick={open}
      disabled={!data}
      data-testid="add-board"
    >
      Add a board
    </Button>
  );
  return (
    <AddedPanel kind={BOARDS} rows={data} error={error} extra={mayWrite && button}>
      {adds && data && <AddBoard boards={data} onClose={close} />}
    </AddedPanel>
  );
}

/** Lets the editor ask anew for its palette whenever a board has been measured. */
function useFreshPalette(boards: readonly Board[] | undefined) {
  const client = useQueryClient();
  const measured = boards?.map(({ name, device }) => `${name} ${device?.flop_per_s ?? ''}`).join();
  useEffect(() => {
    if (measured) void client.invalidateQueries({ queryKey: ['catalogue'] });
  }, [client, measured]);
}

function Who({ board: { name, owner, hello } }: { board: Board }) {
  return (
    <>
      <Text size="sm" fw={500}>
        {name}
      </Text>
      <Text size="xs" c="dimmed">
        {hello ? `${hello.processor}, ${hello.host}` : `added by ${owner || 'nobody any more'}`}
      </Text>
    </>
  );
}

function State({ board }: { board: Board }) {
  const now = useNow();
  const state = boardState(board, now);
  return (
    <div className={classes.state}>
      <Badge variant="light" color={COLORS[state]} data-testid="board-state">
        {state}
      </Badge>
      <Text size="xs" c="dimmed" mt={2}>
        {boardStateText(board, now)}
      </Text>
    </div>
  );
}

function Rates({ board }: { board: Board }) {
  return (
    <>
      <Tooltip label={board.device?.source} disabled={!board.device} multiline maw={320}>
        <Text size="sm" c={board.device ? undefined : 'dimmed'}>
          {ratesText(board)}
        </Text>
      </Tooltip>
      {board.caution && (
        <Text size="xs" c="var(--loom-warn)" mt={2} maw={320}>
          {board.caution}
        </Text>
      )}
    </>
  );
}

function Versions({ hello }: { hello: NonNullable<Board['hello']> }) {
  return (
    <>
      <Text size="sm">EdgeLoom {hello.edgeloom}</Text>
      <Text size="xs" c="dimmed">
        torch {hello.torch}, Python {hello.python}, {hello.architecture}
      </Text>
    </>
  );
}
