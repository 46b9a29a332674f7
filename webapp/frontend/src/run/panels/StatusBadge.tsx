import { Badge } from '@mantine/core';
import { isOver, type RunState } from '@/api/types';

const COLORS: Partial<Record<RunState, string>> = {
  queued: 'gray',
  running: 'green.8', // filled: white on it has a contrast of 5.8 in light and dark
  finished: 'teal',
  failed: 'red',
  cancelled: 'gray',
};

/** The state of a run in one word. */
export function StatusBadge({ state }: { state: RunState }) {
  return (
    <Badge
      component="span"
      variant={isOver(state) || state === 'queued' ? 'light' : 'filled'}
      color={COLORS[state] ?? 'ink'}
      data-testid="run-state"
      tt="none"
      size="lg"
    >
      {state}
    </Badge>
  );
}
