import { Anchor, Table, Text } from '@mantine/core';
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
      <Table verticalSpacing="sm" horizontalSpacing="md">
        <Table.Tbody>
          {query.data
            .filter(({ paper }) => paper === '')
            .map(({ name, title, description, num_points }) => (
              <Table.Tr key={name}>
                <Table.Td>
                  <Text size="sm" fw={500}>
                    {title || name}
                  </Text>
                  <Text size="xs" c="dimmed">
                    {description}
                  </Text>
                </Table.Td>
                <Table.Td w={110} ta="right">
                  <Text size="sm" c="dimmed">
                    {num_points} points
                  </Text>
                </Table.Td>
                <Table.Td w={150} ta="right">
                  <CopyButton name={name} />
                </Table.Td>
              </Table.Tr>
            ))}
        </Table.Tbody>
      </Table>
      <Text size="sm" c="dimmed" px="md" py="sm">
        {papers} more reproduce tables and figures of papers:{' '}
        <Anchor component={Link} to="/experiments/reproductions" size="sm">
          Reproductions
        </Anchor>
      </Text>
    </Panel>
  );
}
