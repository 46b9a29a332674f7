import { Alert, Button, Group, Modal, Progress, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconAlertTriangle, IconFolder } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { ApiError, api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { AddedModel } from '@/api/types';
import { human } from '@/format/units';
import { modelFiles, modelName, reasonAgainst, totalBytes } from './modelFiles';

const bytesText = (bytes: number) => human(bytes, 'B');

interface Props {
  limitBytes: number;
  onClose: () => void;
}

/** The dialog that uploads the folder of a Hugging Face model. Closing it stops the upload. */
export function UploadModel({ limitBytes, onClose }: Props) {
  const [files, setFiles] = useState<File[]>([]);
  const [name, setName] = useState('');
  const [sent, setSent] = useState(0);
  const stopping = useRef(new AbortController());
  const remember = useChange('catalogue', async () => undefined);
  const upload = useChange('models', (form: FormData) =>
    api.uploadSlowly<AddedModel>('/models', form, setSent, stopping.current.signal),
  );
  useEffect(() => {
    const controller = new AbortController();
    stopping.current = controller;
    return () => controller.abort();
  }, []);
  const against = files.length > 0 ? reasonAgainst(files, limitBytes, bytesText) : '';
  const aboutName = upload.error instanceof ApiError ? upload.error.about('name') : undefined;

  function choose(chosen: FileList | null) {
    const found = modelFiles([...(chosen ?? [])]);
    setFiles(found);
    setName((before) => before || modelName(found));
    upload.reset();
  }

  function send() {
    const form = new FormData();
    form.append('name', name.trim());
    for (const file of files) form.append('files', file, file.name);
    setSent(0);
    upload.mutate(form, {
      onSuccess: (added) => {
        remember.mutate(undefined);
        notifications.show({ message: `${added.name} was added: New run offers it.` });
        onClose();
      },
    });
  }

  return (
    <Modal opened onClose={onClose} title="Upload a model" centered size="lg">
      <Stack gap="md">
        <Text size="sm" c="dimmed">
          A folder as Hugging Face has it: config.json, weights as .safetensors, tokenizer.json,
          chat_template.jinja. At most {bytesText(limitBytes)}. Its files are checked before they are kept.
        </Text>
        <FolderInput files={files} onChoose={choose} disabled={upload.isPending} />
        <TextInput
          label="Name"
          description="Letters, digits, dots, dashes and underscores."
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={aboutName}
          disabled={upload.isPending}
          maxLength={60}
          data-testid="model-name"
        />
        {(against || upload.error) && (
          <Alert color="red" variant="light" icon={<IconAlertTriangle size={20} />} role="alert">
            <Text size="sm">{against || sentence(upload.error)}</Text>
          </Alert>
        )}
        {upload.isPending && (
          <Stack gap={4} role="status">
            <Progress value={100 * sent} aria-label="Sent so far" animated={sent >= 1} />
            <Text size="xs" c="dimmed">
              {sent < 1
                ? `${Math.round(100 * sent)} % sent`
                : 'Everything was sent: it is checked and stored.'}
            </Text>
          </Stack>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            {upload.isPending ? 'Stop' : 'Cancel'}
          </Button>
          <Button
            onClick={send}
            loading={upload.isPending}
            disabled={files.length === 0 || against !== '' || name.trim() === ''}
            data-testid="send-model"
          >
            Upload
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

interface FolderProps {
  files: readonly File[];
  onChoose: (files: FileList | null) => void;
  disabled: boolean;
}

function FolderInput({ files, onChoose, disabled }: FolderProps) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <Group gap="sm">
      <input
        ref={input}
        type="file"
        hidden
        multiple
        onChange={(event) => onChoose(event.currentTarget.files)}
        data-testid="model-folder"
        {...{ webkitdirectory: '' }}
      />
      <Button
        variant="default"
        leftSection={<IconFolder size={16} />}
        onClick={() => input.current?.click()}
        disabled={disabled}
      >
        Choose a folder
      </Button>
      <Text size="sm" c="dimmed" data-testid="model-files">
        {files.length === 0
          ? 'No folder chosen'
          : `${files.length} files, ${bytesText(totalBytes(files))}: ${files
              .slice(0, 3)
              .map((file) => file.name)
              .join(', ')}${files.length > 3 ? ', …' : ''}`}
      </Text>
    </Group>
  );
}
