import { Button, FileButton } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconFileImport } from '@tabler/icons-react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';

/** Stores an experiment file (TOML) from this computer. */
export function ImportButton() {
  const navigate = useNavigate();
  const store = useChange('experiments', async (file: File) =>
    api.post<{ id: number }>('/experiments', { toml: await file.text() }),
  );
  const take = (file: File | null) =>
    file &&
    store.mutate(file, {
      onSuccess: ({ id }) => navigate(`/experiments/${id}`),
      onError: (error) =>
        notifications.show({ color: 'red', title: file.name, message: sentence(error), autoClose: false }),
    });
  return (
    <FileButton accept=".toml" onChange={take}>
      {(props) => (
        <Button
          {...props}
          variant="default"
          leftSection={<IconFileImport size={16} />}
          loading={store.isPending}
          data-testid="import-experiment"
        >
          Import
        </Button>
      )}
    </FileButton>
  );
}
