import { Anchor, Group, Progress, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import { Panel } from '@/components/Panel';
import { useNow } from '@/components/useNow';
import type { ExperimentRow } from '@/experiment/data/answers';
import { ago } from '@/format/units';
import classes from './start.module.css';

const MANY = 5;

/** Those of these experiments that changed last, with how far they are; renders nothing if there is none. */
export function RecentExperiments({ rows }: { rows: readonly ExperimentRow[] }) {
  const now = useNow();
  if (rows.length === 0) return null;
  const newest = rows.toSorted((a, b) => Date.parse(b.updated_at) - Date.parse(a.updated_at)).slice(0, MANY);
  return (
    <Panel
      title="Recent experiments"
      testId="recent-experiments"
      flush
      extra={
        <Anchor component={Link} to="/experiments" size="sm">
          All experiments
        </Anchor>
      }
    >
      <ul className={classes.list}>
        {newest.map(({ id, title, name, state, done, total, updated_at }) => (
          <li key={id}>
            <Anchor component={Link} to={`/experiments/${id}`} size="sm" fw={500}>
              {title || name}
            </Anchor>
            <Group gap="xs" wrap="nowrap">
              {total > 0 && (
                <Progress
                  w={110}
                  value={(100 * done) / total}
                  aria-label={`${done} of ${total} points done`}
                />
              )}
              <Text size="sm" c="dimmed">
                {state === 'new' ? 'not started' : `${state}, ${done} of ${total} points`}
              </Text>
            </Group>
            <Text size="sm" c="dimmed" ta="right">
              {ago(updated_at, now)}
            </Text>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
