import { Button, FileButton } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconFileImport } from '@tabler/icons-react';
import { useRef } from 'react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { ImportedStudy } from '@/experiment/data/answers';

interface Imported {
  id: number;
  /** How far a study's runs are the same here. */
  told?: string;
}

const endsWith = (file: File, ending: string) => file.name.toLowerCase().endsWith(ending);

/** The experiment's file comes first. */
const inOrder = (files: readonly File[]) =>
  files.toSorted((a, b) => Number(endsWith(b, '.toml')) - Number(endsWith(a, '.toml')));

async function send([file, ...recorded]: readonly File[]): Promise<Imported> {
  if (!endsWith(file!, '.zip')) {
    const texts = await Promise.all(recorded.map(async (one) => [one.name, await one.text()]));
    return api.post<Imported>('/experiments', { toml: await file!.text(), files: Object.fromEntries(texts) });
  }
  const form = new FormData();
  form.append('file', file!);
  const study = await api.upload<ImportedStudy>('/experiments/study', form);
  return { id: study.experiments[0]!.id, told: study.told };
}

/** Stores an experiment file (TOML) with the recorded files that it names, or the experiments of a study (ZIP). */
export function ImportButton() {
  const navigate = useNavigate();
  const store = useChange('experiments', send);
  const again = useRef<() => void>(null);
  const take = (chosen: File[]) => {
    again.current?.();
    const files = inOrder(chosen);
    const file = files[0];
    if (!file) return;
    store.mutate(files, {
      onSuccess: ({ id, told }) => {
        if (told) notifications.show({ title: file.name, message: told, autoClose: false });
        navigate(`/experiments/${id}`);
      },
      onError: (error) =>
        notifications.show({ color: 'red', title: file.name, message: sentence(error), autoClose: false }),
    });
  };
  return (
    <FileButton multiple resetRef={again} onChange={take}>
      {(props) => (
        <Button
          {...props}
          variant="default"
          title="A study (.zip), or an experiment (.toml) together with the recorded files that it names"
          leftSection={<IconFileImport size={16} />}
          loading={store.isPending || store.isSuccess}
          data-testid="import-experiment"
        >
          Import
        </Button>
      )}
    </FileButton>
  );
}
