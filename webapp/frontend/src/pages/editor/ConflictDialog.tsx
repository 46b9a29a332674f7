import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { NAME_PATTERN } from '@/cluster/drawing';
import type { Conflict } from './useSave';

interface Props {
  conflict: Conflict | null;
  name: string;
  onClose: () => void;
  onReload: () => void;
  onOverwrite: () => void;
  onSaveAs: (name: string) => void;
}

/** The drawing cannot be stored in its place: save it under another name, or settle who wins. */
export function ConflictDialog({ conflict, name, onClose, onReload, onOverwrite, onSaveAs }: Props) {
  const [copy, setCopy] = useState('');
  const proposed = copy || `${name.slice(0, 25)}-copy`;
  return (
    <Modal
      opened={conflict !== null}
      onClose={onClose}
      title={conflict?.forbidden ? 'Save a copy' : 'Somebody else saved this cluster'}
      centered
      size="md"
    >
      <Stack>
        <Text size="sm" data-testid="conflict">
          {conflict?.message}
        </Text>
        <Group align="flex-end" gap="xs">
          <TextInput
            label={conflict?.forbidden ? 'Save mine as' : 'Keep both: save mine as'}
            value={proposed}
            flex={1}
            onChange={(event) => setCopy(event.currentTarget.value)}
            error={NAME_PATTERN.test(proposed) ? null : 'Lower-case letters, digits, - and _.'}
            data-testid="conflict-name"
          />
          <Button
            onClick={() => onSaveAs(proposed)}
            disabled={!NAME_PATTERN.test(proposed)}
            data-testid="conflict-save-as"
          >
            Save as
          </Button>
        </Group>
        {!conflict?.forbidden && (
          <Group justify="flex-end">
            <Button variant="default" onClick={onReload} data-testid="conflict-reload">
              Take theirs
            </Button>
            <Button variant="light" color="red" onClick={onOverwrite} data-testid="conflict-overwrite">
              Replace with mine
            </Button>
          </Group>
        )}
      </Stack>
    </Modal>
  );
}
