import { Button, FileButton } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconFileImport } from '@tabler/icons-react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { ImportedStudy } from '@/experiment/data/answers';

interface Imported {
  id: number;
  /** How far a study's runs are the same here. */
  told?: string;
}

async function send(file: File): Promise<Imported> {
  if (!file.name.toLowerCase().endsWith('.zip'))
    return api.post<Imported>('/experiments', { toml: await file.text() });
  const form = new FormData();
  form.append('file', file);
  const study = await api.upload<ImportedStudy>('/experiments/study', form);
  return { id: study.experiments[0]!.id, told: study.told };
}

/** Stores an experiment file (TOML), or the experiments of a study (ZIP), from this computer. */
export function ImportButton() {
  const navigate = useNavigate();
  const store = useChange('experiments', send);
  const take = (file: File | null) =>
    file &&
    store.mutate(file, {
      onSuccess: ({ id, told }) => {
        if (told) notifications.show({ title: file.name, message: told, autoClose: false });
        navigate(`/experiments/${id}`);
      },
      onError: (error) =>
        notifications.show({ color: 'red', title: file.name, message: sentence(error), autoClose: false }),
    });
  return (
    <FileButton accept=".toml,.zip" onChange={take}>
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
