import { Anchor, Group, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Panel } from '@/components/Panel';
import type { useShipped } from '@/experiment/data/queries';
import { CopyButton } from '../CopyButton';

/** The experiments that come with EdgeLoom; those of papers are on a page of their own. */
export function ShippedPanel({ query }: { query: ReturnType<typeof useShipped> }) {
  if (query.isError) return <ErrorPanel message={sentence(query.error)} onRetry={() => query.refetch()} />;
  if (!query.data) return null;
  const papers = query.data.filter(({ paper }) => paper !== '').length;
  return (
    <Panel title="To start from" about="shipped with EdgeLoom" testId="shipped" flush>
      {query.data
        .filter(({ paper }) => paper === '')
        .map(({ name, title, description, num_points }) => (
          <Group
            key={name}
            gap="md"
            px="md"
            py="sm"
            justify="flex-end"
            style={{ borderBottom: '1px solid var(--loom-line)' }}
          >
            <div style={{ flex: '1 1 260px' }}>
              <Text size="sm" fw={500}>
                {title || name}
              </Text>
              <Text size="xs" c="dimmed">
                {description}
              </Text>
            </div>
            <Text size="sm" c="dimmed">
              {num_points} points
            </Text>
            <CopyButton name={name} />
          </Group>
        ))}
      <Text size="sm" c="dimmed" px="md" py="sm">
        {papers} more reproduce tables and figures of papers:{' '}
        <Anchor component={Link} to="/experiments/reproductions" size="sm">
          Reproductions
        </Anchor>
      </Text>
    </Panel>
  );
}
