import { Alert, Text } from '@mantine/core';
import { IconAlertTriangle, IconHandStop } from '@tabler/icons-react';
import type { OutcomeKind, RunDetail } from '@/api/types';

const TITLES: Record<Exclude<OutcomeKind, 'finished'>, string> = {
  out_of_memory: 'Out of memory',
  peer_lost: 'A device failed',
  deadlock: 'Deadlock',
  cancelled: 'Stopped',
  failed: 'The run failed',
};

/** How the run ended if it did not finish. */
export function OutcomeAlert({ run }: { run: RunDetail }) {
  const kind = (run.report?.outcome.kind ?? run.outcome ?? run.status) as string;
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
      title={TITLES[kind as keyof typeof TITLES] ?? TITLES.failed}
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
