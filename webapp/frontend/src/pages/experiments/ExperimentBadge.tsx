import { Badge } from '@mantine/core';
import type { ExperimentState } from '@/experiment/data/answers';

const LOOK: Record<ExperimentState, { color: string; text: string }> = {
  new: { color: 'gray', text: 'not started' },
  running: { color: 'ink', text: 'running' },
  paused: { color: 'yellow', text: 'paused' },
  cancelled: { color: 'gray', text: 'cancelled' },
  finished: { color: 'teal', text: 'finished' },
};

/** What an experiment is doing. */
export function ExperimentBadge({ state }: { state: ExperimentState }) {
  const { color, text } = LOOK[state];
  return (
    <Badge component="span" variant="light" color={color} data-testid="experiment-state">
      {text}
    </Badge>
  );
}
