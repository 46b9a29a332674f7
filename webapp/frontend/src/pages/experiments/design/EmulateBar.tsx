import { Button, Card, Text } from '@mantine/core';
import { IconDeviceFloppy, IconPlayerPlay } from '@tabler/icons-react';
import { useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import type { PreviewAnswer, StoredExperiment } from '@/experiment/data/answers';
import type { ExperimentDocument } from '@/experiment/data/types';
import { duration } from '@/format/units';
import { bestDigests, emulationTime } from '@/experiment/data/choose';
import type { Selection } from '../selection';
import classes from './design.module.css';

interface Props {
  /** The experiment that is edited; null: a new one is stored. */
  stored: StoredExperiment | null;
  experiment: ExperimentDocument;
  preview: PreviewAnswer;
  selection: Selection;
  disabled: boolean;
}

/** Chooses points, stores the experiment, and starts its emulation. */
export function EmulateBar({ stored, experiment, preview, selection, disabled }: Props) {
  const navigate = useNavigate();
  const planned = preview.points.filter(({ problem }) => problem === '');
  const known = new Set(planned.map(({ digest }) => digest));
  const chosen = [...selection.digests].filter((digest) => known.has(digest));
  const time = emulationTime(preview, chosen);
  const store = useChange('experiments', async (digests: string[]) => {
    const { id } = stored
      ? await api.put<{ id: number }>(`/experiments/${stored.id}`, { experiment, version: stored.version })
      : await api.post<{ id: number }>('/experiments', { experiment });
    await api.post(`/experiments/${id}/predict`);
    if (digests.length > 0) await api.post(`/experiments/${id}/emulate`, { digests });
    return id;
  });
  // Until the other page is there: a second press would store a second experiment.
  const isBusy = store.isPending || store.isSuccess;
  const go = (digests: string[]) =>
    store.mutate(digests, { onSuccess: (id) => navigate(`/experiments/${id}`) });
  return (
    <Card padding="sm">
      <div className={classes.bar}>
        <Text size="sm" fw={500}>
          Emulate
        </Text>
        <Button
          size="xs"
          variant="default"
          onClick={() => selection.set(bestDigests(preview.best, preview.rows))}
          data-testid="choose-best"
        >
          Best of each
        </Button>
        <Button
          size="xs"
          variant="default"
          onClick={() => selection.set([...known])}
          data-testid="choose-all"
        >
          All
        </Button>
        <Button
          size="xs"
          variant="default"
          disabled={chosen.length === 0}
          onClick={() => selection.set([])}
          data-testid="choose-none"
        >
          None
        </Button>
        <Text size="sm" c="dimmed" data-testid="chosen">
          {chosen.length === 0
            ? 'No point is chosen.'
            : `${chosen.length} ${chosen.length === 1 ? 'point' : 'points'}${time === null ? '' : `, about ${duration(time)}`}`}
        </Text>
        <div style={{ flex: 1 }} />
        <Button
          variant="default"
          leftSection={<IconDeviceFloppy size={16} />}
          disabled={disabled || isBusy}
          onClick={() => go([])}
          data-testid="save-experiment"
        >
          Save
        </Button>
        <Button
          leftSection={<IconPlayerPlay size={16} />}
          disabled={disabled || chosen.length === 0}
          loading={isBusy}
          onClick={() => go(chosen)}
          data-testid="emulate"
        >
          Save and emulate
        </Button>
      </div>
      {store.error && <ErrorPanel title="Not stored" message={sentence(store.error)} />}
    </Card>
  );
}
