import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconArrowsDiff, IconExternalLink, IconPlayerPlay } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { SelectionBar } from '@/components/SelectionBar';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import type { World } from '@/api/worlds';
import type { RowAnswer } from '@/experiment/data/answers';
import { withPoints, useComparison } from '../comparison';
import type { Selection } from '../selection';

interface Props {
  id: number;
  rows: readonly RowAnswer[];
  selection: Selection;
  mayChange: boolean;
  /** Whether points may run on boards. */
  hasBoards: boolean;
}

const ACTIONS = [
  { world: 'emulated', title: 'Emulate', testId: 'emulate-selected' },
  { world: 'nodes', title: 'On the boards', testId: 'boards-selected' },
] as const;

/** States in which a point may be asked for again. */
const RETRIED: readonly string[] = ['failed', 'problem'];

/** Actions on the selected points: emulate, run on boards, compare with points of any experiment, open the run. */
export function PointActions({ id, rows, selection, mayChange, hasBoards }: Props) {
  const [compared, setCompared] = useComparison();
  const chosen = rows.filter(({ digest }) => digest && selection.digests.has(digest));
  const digests = [...new Set(chosen.map(({ digest }) => digest))];
  const lacking = (asked: World) => {
    const there = chosen.filter(({ world, state }) => world === asked && !RETRIED.includes(state));
    const known = new Set(there.map(({ digest }) => digest));
    return digests.filter((digest) => !known.has(digest));
  };
  const carryOut = useChange('experiments', (world: World) =>
    api.post(`/experiments/${id}/emulate`, { digests: lacking(world), world }),
  );
  if (digests.length === 0) return null;
  const [run] = chosen.flatMap(({ run_id }) => (run_id === null ? [] : [run_id]));
  return (
    <SelectionBar
      what={`${digests.length} ${digests.length === 1 ? 'point' : 'points'}`}
      testId="points-bar"
      onClear={() => selection.set([])}
    >
      {mayChange &&
        ACTIONS.filter(({ world }) => world !== 'nodes' || hasBoards).map(({ world, title, testId }) => (
          <Button
            key={world}
            size="xs"
            leftSection={<IconPlayerPlay size={15} />}
            disabled={lacking(world).length === 0}
            loading={carryOut.isPending && carryOut.variables === world}
            onClick={() =>
              carryOut.mutate(world, {
                onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
              })
            }
            data-testid={testId}
          >
            {title} {lacking(world).length || ''}
          </Button>
        ))}
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
