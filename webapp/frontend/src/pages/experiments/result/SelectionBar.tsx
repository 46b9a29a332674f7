import { Button, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconArrowsDiff, IconExternalLink, IconPlayerPlay, IconX } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { RowAnswer } from '@/experiment/data/answers';
import { withPoints, useComparison } from '../comparison';
import type { Selection } from '../selection';
import classes from './result.module.css';

interface Props {
  id: number;
  rows: readonly RowAnswer[];
  selection: Selection;
  mayChange: boolean;
}

/** Actions on the selected points: emulate, compare with points of any experiment, open the run. */
export function SelectionBar({ id, rows, selection, mayChange }: Props) {
  const [compared, setCompared] = useComparison();
  const chosen = rows.filter(({ digest }) => digest && selection.digests.has(digest));
  const emulated = new Set(
    chosen
      .filter(({ world, state }) => world === 'emulated' && state !== 'failed')
      .map(({ digest }) => digest),
  );
  const digests = [...new Set(chosen.map(({ digest }) => digest))];
  const missing = digests.filter((digest) => !emulated.has(digest));
  const emulate = useChange('experiments', (wanted: string[]) =>
    api.post(`/experiments/${id}/emulate`, { digests: wanted }),
  );
  if (digests.length === 0) return null;
  const [run] = chosen.flatMap(({ run_id }) => (run_id === null ? [] : [run_id]));
  return (
    <div className={classes.bar} data-testid="points-bar">
      <Text size="sm" fw={500}>
        {digests.length} {digests.length === 1 ? 'point' : 'points'} selected
      </Text>
      {mayChange && (
        <Button
          size="xs"
          leftSection={<IconPlayerPlay size={15} />}
          disabled={missing.length === 0}
          loading={emulate.isPending}
          onClick={() =>
            emulate.mutate(missing, {
              onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
            })
          }
          data-testid="emulate-selected"
        >
          Emulate {missing.length > 0 ? missing.length : ''}
        </Button>
      )}
      <Button
        size="xs"
        variant="default"
        leftSection={<IconArrowsDiff size={15} />}
        onClick={() => setCompared(withPoints(compared, id, digests))}
        data-testid="add-to-comparison"
      >
        Add to comparison
      </Button>
      {compared.length > 0 && (
        <Button
          size="xs"
          variant="default"
          component={Link}
          to="/experiments/compare"
          data-testid="open-comparison"
        >
          Compare {compared.length}
        </Button>
      )}
      {run !== undefined && digests.length === 1 && (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconExternalLink size={15} />}
          component={Link}
          to={`/runs/${run}`}
          data-testid="open-point-run"
        >
          Open run {run}
        </Button>
      )}
      <Button
        size="xs"
        variant="subtle"
        color="gray"
        leftSection={<IconX size={14} />}
        onClick={() => selection.set([])}
      >
        Clear
      </Button>
    </div>
  );
}
