import { Button, Card, Group, Progress as Bar, Text } from '@mantine/core';
import { IconRefresh } from '@tabler/icons-react';
import { api, sentence } from '@/api/client';
import { useChange } from '@/api/queries';
import { type World, WORLDS } from '@/api/worlds';
import type { ExperimentState, Progress, StoredExperiment, WorldProgress } from '@/experiment/data/answers';
import { holderText } from '@/format/holder';
import { duration } from '@/format/units';
import { notifications } from '@mantine/notifications';
import classes from './result.module.css';
import { capital } from '@/format/words';

interface Props {
  stored: StoredExperiment;
  progress: Progress;
  state: ExperimentState;
  mayChange: boolean;
}

/** How far the experiment is in each world, how long the rest takes, and what can be repeated. */
export function ProgressPanel({ stored, progress, state, mayChange }: Props) {
  const worlds = WORLDS.flatMap((world): [World, WorldProgress][] => {
    const numbers = progress[world];
    return numbers ? [[world, numbers]] : [];
  });
  const failed = worlds.reduce((sum, [, world]) => sum + world.failed, 0);
  const retry = useChange('experiments', (scope: 'failed' | 'stale') =>
    api.post<{ count: number }>(`/experiments/${stored.id}/retry`, { scope }),
  );
  const again = (scope: 'failed' | 'stale') =>
    retry.mutate(scope, {
      onError: (error) => notifications.show({ color: 'red', message: sentence(error) }),
    });
  const edited = stored.started_version !== null && stored.started_version !== stored.version;
  if (worlds.length === 0 && !edited) return null;
  return (
    <Card padding="sm" data-testid="progress">
      <div className={classes.worlds}>
        {worlds.map(([world, numbers]) => (
          <WorldPart key={world} world={world} numbers={numbers} active={state === 'running'} />
        ))}
        <Group gap="xs" ml="auto">
          {mayChange && failed > 0 && (
            <Button
              size="xs"
              variant="default"
              leftSection={<IconRefresh size={14} />}
              onClick={() => again('failed')}
              data-testid="retry-failed"
            >
              Retry {failed} failed
            </Button>
          )}
          {mayChange && stored.stale > 0 && (
            <Button
              size="xs"
              variant="default"
              leftSection={<IconRefresh size={14} />}
              onClick={() => again('stale')}
              data-testid="retry-stale"
            >
              Repeat {stored.stale} of other versions
            </Button>
          )}
        </Group>
      </div>
      {stored.stale > 0 && (
        <Text size="xs" c="var(--loom-warn)" mt={6}>
          {stored.stale} {stored.stale === 1 ? 'row was' : 'rows were'} made by another version of the code,
          or by another calibration of the host, than the present ones. The rows below say which.
        </Text>
      )}
      {worlds.flatMap(([world, numbers]) =>
        Object.entries(numbers.lacking).map(([method, count]) => (
          <Text key={`${world} ${method}`} size="xs" c="var(--loom-warn)" mt={6} data-testid="lacking">
            {world.charAt(0).toUpperCase() + world.slice(1)}: {count}{' '}
            {count === 1 ? 'point waits' : 'points wait'} for a worker with the method of {method}. Install it
            on one, and name it in LOOM_METHODS there.
          </Text>
        )),
      )}
      {edited && (
        <Text size="xs" c="dimmed" mt={6}>
          The rows are of version {stored.started_version}; the design is version {stored.version}. Press
          Predict to compute the present one.
        </Text>
      )}
    </Card>
  );
}

function WorldPart({ world, numbers, active }: { world: World; numbers: WorldProgress; active: boolean }) {
  const { total, done, failed, running, waiting, problem, invalid, missed, left_s, held_by } = numbers;
  const title = capital(world);
  const share = (count: number) => (total > 0 ? (count / total) * 100 : 0);
  const rest = [
    running > 0 && `${running} ${held_by ? 'begun' : 'running'}`,
    waiting > 0 && `${waiting} waiting`,
    failed > 0 && `${failed} failed`,
    problem > 0 && `${problem} cannot run`,
  ].filter(Boolean);
  return (
    <div className={classes.world} data-testid={`progress-${world}`}>
      <Text size="sm" fw={500}>
        {title} {done} of {total}
        {invalid > 0 && (
          <Text span size="sm" c="var(--loom-warn)" fw={500} data-testid="num-invalid">
            {`, ${invalid} not valid and left out`}
          </Text>
        )}
        {missed > 0 && (
          <Text span size="sm" c="var(--loom-warn)" fw={500} data-testid="num-missed">
            {`, ${missed} ended before a change of the scenario`}
          </Text>
        )}
        <Text span size="sm" c="dimmed" fw={400}>
          {rest.length > 0 && ` · ${rest.join(', ')}`}
          {active && held_by && ` · waits for ${holderText(held_by)}`}
          {active && waiting + running > 0 && left_s !== null && ` · about ${duration(left_s)} left`}
        </Text>
      </Text>
      <Bar.Root size={8} mt={5} aria-label={`${title}: ${done} of ${total} points done`}>
        <Bar.Section value={share(done - invalid)} color="teal" aria-label="Done" />
        <Bar.Section value={share(invalid)} color="yellow" aria-label="Not valid" />
        <Bar.Section value={share(running)} color="ink" striped animated aria-label="Running" />
        <Bar.Section value={share(failed)} color="red" aria-label="Failed" />
        <Bar.Section value={share(problem)} color="gray" aria-label="Cannot run" />
      </Bar.Root>
    </div>
  );
}
