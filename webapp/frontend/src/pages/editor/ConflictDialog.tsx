import { Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import { NAME_PATTERN } from '@/cluster/drawing';

interface Props {
  message: string;
  name: string;
  onClose: () => void;
  onReload: () => void;
  onOverwrite: () => void;
  onSaveAs: (name: string) => void;
}

/** Somebody else saved this cluster in the meantime: keep both versions, theirs, or mine. */
export function ConflictDialog({ message, name, onClose, onReload, onOverwrite, onSaveAs }: Props) {
  const [copy, setCopy] = useState('');
  const proposed = copy || `${name.slice(0, 25)}-copy`;
  return (
    <Modal
      opened={message !== ''}
      onClose={onClose}
      title="Somebody else saved this cluster"
      centered
      size="md"
    >
      <Stack>
        <Text size="sm" data-testid="conflict">
          {message}
        </Text>
        <Group align="flex-end" gap="xs">
          <TextInput
            label="Keep both: save mine as"
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
        <Group justify="flex-end">
          <Button variant="default" onClick={onReload} data-testid="conflict-reload">
            Take theirs
          </Button>
          <Button variant="light" color="red" onClick={onOverwrite} data-testid="conflict-overwrite">
            Replace with mine
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
