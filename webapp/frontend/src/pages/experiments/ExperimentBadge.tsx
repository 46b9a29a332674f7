import { Badge } from '@mantine/core';
import type { ExperimentState } from '@/experiment/data/answers';

const LOOK: Record<ExperimentState, { color: string; text: string }> = {
  new: { color: 'gray', text: 'not started' },
  running: { color: 'ink', text: 'running' },
  paused: { color: 'yellow', text: 'paused' },
  cancelled: { color: 'gray', text: 'cancelled' },
  finished: { color: 'teal', text: 'finished' },
};

/** What an experiment is doing; of a finished one also how many points do not count. */
export function ExperimentBadge({ state, notCounted = 0 }: { state: ExperimentState; notCounted?: number }) {
  const isShort = state === 'finished' && notCounted > 0;
  const { color, text } = isShort
    ? { color: 'yellow', text: `finished, ${notCounted} left out` }
    : LOOK[state];
  return (
    <Badge component="span" variant="light" color={color} data-testid="experiment-state">
      {text}
    </Badge>
  );
}
