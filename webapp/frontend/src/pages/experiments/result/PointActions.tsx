import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconArrowsDiff, IconExternalLink, IconPlayerPlay } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { SelectionBar } from '@/components/SelectionBar';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { RowAnswer } from '@/experiment/data/answers';
import { withPoints, useComparison } from '../comparison';
import type { Selection } from '../selection';

interface Props {
  id: number;
  rows: readonly RowAnswer[];
  selection: Selection;
  mayChange: boolean;
}

/** Actions on the selected points: emulate, compare with points of any experiment, open the run. */
export function PointActions({ id, rows, selection, mayChange }: Props) {
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
    <SelectionBar
      what={`${digests.length} ${digests.length === 1 ? 'point' : 'points'}`}
      testId="points-bar"
      onClear={() => selection.set([])}
    >
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
    </SelectionBar>
  );
}
