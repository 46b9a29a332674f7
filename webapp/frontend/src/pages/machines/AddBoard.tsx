import { Alert, Anchor, Button, Code, CopyButton, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { type SubmitEvent, useState } from 'react';
import { ApiError, api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { Board, NewBoard } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { isLoopback, joinLine, nextName } from './board';

interface Props {
  boards: readonly Board[];
  onClose: () => void;
}

/** The dialog that makes a board's token, and shows the line to type there, once. */
export function AddBoard({ boards, onClose }: Props) {
  const [made, setMade] = useState<NewBoard | null>(null);
  const joined = boards.some(({ name, connected }) => name === made?.name && connected);
  return (
    <Modal opened onClose={onClose} title="Add a board" centered size="lg" closeOnClickOutside={!made}>
      {made ? (
        <JoinLine made={made} joined={joined} onClose={onClose} />
      ) : (
        <NameForm suggested={nextName(boards)} onMade={setMade} />
      )}
    </Modal>
  );
}

function NameForm({ suggested, onMade }: { suggested: string; onMade: (made: NewBoard) => void }) {
  const [name, setName] = useState(suggested);
  const make = useChange('boards', () => api.post<NewBoard>('/nodes', { name }));
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    make.mutate(undefined, { onSuccess: onMade });
  };
  const aboutName = make.error instanceof ApiError ? make.error.about('name') : undefined;
  return (
    <form onSubmit={submit}>
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          A board is any Linux machine with Python: a Raspberry Pi, a Jetson, a laptop, a rented server. It
          needs no root and no open port: it calls this server.
        </Text>
        <TextInput
          label="Name"
          description="As clusters call it: small letters, digits, dashes and underscores."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={aboutName}
          maxLength={31}
          data-autofocus
          data-testid="board-name"
        />
        {make.isError && !aboutName && <ErrorPanel message={sentence(make.error)} />}
        <Group justify="flex-end">
          <Button type="submit" loading={make.isPending} disabled={!name} data-testid="make-board">
            Make its token
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** The only time that anybody sees the token. */
function JoinLine({ made, joined, onClose }: { made: NewBoard; joined: boolean; onClose: () => void }) {
  const line = joinLine(location.origin, made.token);
  return (
    <Stack gap="md">
      <Text size="sm">
        Type this on {made.name}. The token in it is not shown again, and lapses if nobody uses it within a
        day.
      </Text>
      <Group gap="sm" wrap="nowrap" align="flex-start">
        <Code
          block
          fz="sm"
          flex={1}
          style={{ whiteSpace: 'pre-wrap', wordBreak: 'break-all' }}
          data-testid="join-line"
        >
          {line}
        </Code>
        <CopyButton value={line}>
          {({ copied, copy }) => (
            <Button size="compact-sm" variant="default" onClick={copy} style={{ flexShrink: 0 }}>
              {copied ? 'Copied' : 'Copy'}
            </Button>
          )}
        </CopyButton>
      </Group>
      {isLoopback(location.hostname) && (
        <Alert color="yellow" variant="light">
          <Text size="sm">
            This page is open at {location.host}, where only this machine finds the server: for another
            machine, put the server’s address in your network there.
          </Text>
        </Alert>
      )}
      <Text size="sm" c="dimmed">
        The board needs EdgeLoom’s package with its extra node:{' '}
        <Anchor href="/docs/guides/nodes" target="_blank" size="sm">
          what to install, and what to expect
        </Anchor>
        . Keep the command running: the board is there while it runs.
      </Text>
      <Group justify="space-between">
        <Text size="sm" c={joined ? 'var(--loom-good)' : 'dimmed'} role="status" data-testid="board-joined">
          {joined ? `${made.name} has joined.` : `Waiting for ${made.name} …`}
        </Text>
        <Button variant="default" onClick={onClose}>
          Close
        </Button>
      </Group>
    </Stack>
  );
}
