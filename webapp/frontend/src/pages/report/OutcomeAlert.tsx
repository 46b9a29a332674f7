import { Alert, Text } from '@mantine/core';
import { IconAlertTriangle, IconHandStop } from '@tabler/icons-react';
import type { OutcomeKind, RunDetail } from '@/api/types';

const TITLES: Record<Exclude<OutcomeKind, 'finished'>, string> = {
  out_of_memory: 'Out of memory',
  out_of_time: 'Out of time',
  peer_lost: 'A device failed',
  deadlock: 'Deadlock',
  cancelled: 'Stopped',
  failed: 'The run failed',
};

/** How the run ended if it did not finish. */
export function OutcomeAlert({ run }: { run: RunDetail }) {
  const kind = run.report?.outcome.kind ?? run.outcome ?? run.status;
  const sentence = run.report?.outcome.sentence || run.error;
  if (kind === 'finished' && !run.error) return null;
  const stopped = kind === 'cancelled';
  return (
    <Alert
      color={stopped ? 'gray' : 'red'}
      variant="light"
      data-testid="outcome"
      role="alert"
      icon={stopped ? <IconHandStop size={20} /> : <IconAlertTriangle size={20} />}
      title={titleOf(kind)}
    >
      <Text size="sm">{sentence || 'No reason was given.'}</Text>
      {!stopped && (
        <Text size="sm" c="dimmed" mt={2}>
          Measurements until then are shown below.
        </Text>
      )}
    </Alert>
  );
}

/** `kind` is an outcome, or the run's state if it ended without a report. */
function titleOf(kind: string): string {
  return Object.entries(TITLES).find(([outcome]) => outcome === kind)?.[1] ?? TITLES.failed;
}
