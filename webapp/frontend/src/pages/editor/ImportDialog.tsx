import { Button, FileButton, Group, List, Modal, Stack, Text, Textarea } from '@mantine/core';
import { IconFileUpload } from '@tabler/icons-react';
import { useState } from 'react';
import { ApiError, api, sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { Drawing } from '@/cluster/drawing';

interface Props {
  opened: boolean;
  onClose: () => void;
  onTake: (drawing: Drawing) => void;
}

/** Imports a cluster file, chosen or pasted. A file with errors changes nothing. */
export function ImportDialog({ opened, onClose, onTake }: Props) {
  const [toml, setToml] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const read = async (text: string) => {
    setToml(text);
    setError(null);
    setBusy(true);
    try {
      onTake(await api.post<Drawing>('/clusters/import', { text }));
      setToml('');
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  };
  const more = error instanceof ApiError ? error.fields.slice(1) : [];
  return (
    <Modal opened={opened} onClose={onClose} title="Import a cluster file" size="lg" centered>
      <Stack>
        <Group justify="space-between">
          <Text size="sm" c="dimmed">
            TOML, as ./loom reads it and Export writes it.
          </Text>
          <FileButton accept=".toml,text/plain" onChange={async (file) => file && read(await file.text())}>
            {(props) => (
              <Button
                {...props}
                variant="default"
                size="xs"
                leftSection={<IconFileUpload size={15} />}
                data-testid="import-file"
              >
                Choose a file
              </Button>
            )}
          </FileButton>
        </Group>
        <Textarea
          value={toml}
          onChange={(event) => setToml(event.currentTarget.value)}
          rows={14}
          spellCheck={false}
          data-testid="import-text"
          placeholder={
            'name = "two-boards"\nsource = "desk"\n\n[[device]]\nname = "desk"\npreset = "raspberry-pi-5"\n…'
          }
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)', fontSize: 12.5 } }}
        />
        {error !== null && <ErrorPanel message={sentence(error)} />}
        {more.length > 0 && (
          <List size="xs">
            {more.map(({ path, message }) => (
              <List.Item key={path + message}>
                {path}: {message}
              </List.Item>
            ))}
          </List>
        )}
        <Group justify="flex-end">
          <Button onClick={() => read(toml)} loading={busy} disabled={!toml.trim()} data-testid="import-take">
            Import
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
