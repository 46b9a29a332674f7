import { Button } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconUpload } from '@tabler/icons-react';
import type { ComponentProps } from 'react';
import { useMayWrite } from '@/api/queries';
import type { AddedModel } from '@/api/types';
import { human } from '@/format/units';
import { AddedPanel } from './AddedPanel';
import { useAddedModels } from './queries';
import { UploadModel } from './UploadModel';

const MODELS: ComponentProps<typeof AddedPanel<AddedModel>>['kind'] = {
  title: 'Added models',
  about: 'Kept by digest; every worker fetches and verifies them. New run offers them.',
  testId: 'models',
  rowTestId: 'model',
  nothing: 'No model has been added yet.',
  path: '/models',
  keys: ['models', 'catalogue'],
  consequence: 'Runs that are queued with this model wait until it is added again. Reports stay as they are.',
  columns: [
    { head: 'Model', cell: ({ name }) => name },
    { head: 'Size', cell: ({ bytes }) => human(bytes, 'B') },
    { head: 'Added by', cell: ({ by }) => by || '–' },
    {
      head: 'Added',
      cell: ({ since }) => new Date(since).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' }),
    },
    { head: 'Digest', cell: ({ digest }) => <code>{digest.slice(0, 12)}</code> },
  ],
};

/** Models that people added: every worker can fetch them by their digest. */
export function Models() {
  const mayWrite = useMayWrite();
  const [uploads, { open, close }] = useDisclosure(false);
  const { data, error } = useAddedModels();
  const upload = (
    <Button
      size="xs"
      variant="default"
      leftSection={<IconUpload size={14} />}
      onClick={open}
      data-testid="upload-model"
    >
      Upload a model
    </Button>
  );
  return (
    <AddedPanel kind={MODELS} rows={data?.models} error={error} extra={mayWrite && upload}>
      {uploads && data && <UploadModel limitBytes={data.max_bytes} onClose={close} />}
    </AddedPanel>
  );
}
