import { ActionIcon, Button, Table, Text, Tooltip } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { IconTrash, IconUpload } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { api, sentence } from '@/api/client';
import { useChange, useMayWrite } from '@/api/queries';
import type { AddedModel, AddedModels } from '@/api/types';
import { Panel } from '@/components/Panel';
import { useConfirm } from '@/components/useConfirm';
import { human } from '@/format/units';
import classes from './machines.module.css';
import { UploadModel } from './UploadModel';

/** Models that people added: every worker can fetch them by their digest. */
export function Models() {
  const mayWrite = useMayWrite();
  const [uploads, { open, close }] = useDisclosure(false);
  const query = useQuery({
    queryKey: ['models'],
    queryFn: ({ signal }) => api.get<AddedModels>('/models', signal),
  });
  const models = query.data?.models ?? [];
  return (
    <Panel
      title="Added models"
      about="Kept by digest; every worker fetches and verifies them. New run offers them."
      testId="models"
      extra={
        mayWrite && (
          <Button
            size="xs"
            variant="default"
            leftSection={<IconUpload size={14} />}
            onClick={open}
            data-testid="upload-model"
          >
            Upload a model
          </Button>
        )
      }
      flush
    >
      {uploads && query.data && <UploadModel limitBytes={query.data.max_bytes} onClose={close} />}
      {models.length > 0 ? (
        <ModelTable models={models} mayWrite={mayWrite} />
      ) : (
        <Text c={query.isError ? 'var(--loom-bad)' : 'dimmed'} size="sm" px="md" py="md">
          {query.isError ? sentence(query.error) : 'No model was added to those that come with EdgeLoom.'}
        </Text>
      )}
    </Panel>
  );
}

function ModelTable({ models, mayWrite }: { models: readonly AddedModel[]; mayWrite: boolean }) {
  const [dialog, ask] = useConfirm();
  const remove = useChange('models', (name: string) => api.delete<void>(`/models/${name}`));
  const forget = useChange('catalogue', async () => undefined);
  const failed = (name: string) => (error: Error) =>
    notifications.show({ color: 'red', title: name, message: sentence(error), autoClose: false });
  const question = (name: string) => ({
    title: `Remove ${name}?`,
    text: 'Runs that are queued with this model wait until it is added again. Reports stay as they are.',
    action: 'Remove',
    onConfirm: () =>
      remove.mutate(name, { onError: failed(name), onSuccess: () => forget.mutate(undefined) }),
  });
  return (
    <div className={classes.scroll}>
      {dialog}
      <Table className={classes.table} verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Model</Table.Th>
            <Table.Th>Size</Table.Th>
            <Table.Th>Added by</Table.Th>
            <Table.Th>Added</Table.Th>
            <Table.Th>Digest</Table.Th>
            <Table.Th />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {models.map((model) => (
            <Table.Tr key={model.name} data-testid={`model-${model.name}`}>
              <Table.Td>{model.name}</Table.Td>
              <Table.Td>{human(model.bytes, 'B')}</Table.Td>
              <Table.Td>{model.by || '–'}</Table.Td>
              <Table.Td>
                {new Date(model.since).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' })}
              </Table.Td>
              <Table.Td>
                <code>{model.digest.slice(0, 12)}</code>
              </Table.Td>
              <Table.Td>
                {mayWrite && (
                  <Tooltip label={`Remove ${model.name}`}>
                    <ActionIcon
                      variant="subtle"
                      color="gray"
                      aria-label={`Remove ${model.name}`}
                      onClick={() => ask(question(model.name))}
                    >
                      <IconTrash size={16} />
                    </ActionIcon>
                  </Tooltip>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
