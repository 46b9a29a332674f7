import { Button, SimpleGrid, Skeleton } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useClusters, useMayWrite } from '@/api/queries';
import { EmptyState } from '@/components/EmptyState';
import { ErrorPanel } from '@/components/ErrorPanel';
import { Page } from '@/components/Page';
import { ClusterCard } from './ClusterCard';

/** The page /clusters: all stored clusters. */
export function ClustersPage() {
  const clusters = useClusters();
  const mayWrite = useMayWrite();
  const draw = mayWrite && (
    <Button
      component={Link}
      to="/clusters/new"
      leftSection={<IconPlus size={16} />}
      data-testid="new-cluster"
    >
      Draw a cluster
    </Button>
  );
  return (
    <Page title="Clusters" about="Devices, switches and links to run transformers on." actions={draw}>
      {clusters.isError && (
        <ErrorPanel message={sentence(clusters.error)} onRetry={() => clusters.refetch()} />
      )}
      {clusters.data?.length === 0 && (
        <EmptyState
          title="No cluster yet"
          text="Draw a few devices and the links between them, then start a run."
        >
          {draw}
        </EmptyState>
      )}
      <SimpleGrid cols={{ base: 1, sm: 2, md: 3, xl: 4 }} spacing="md">
        {clusters.isPending && [1, 2, 3].map((key) => <Skeleton key={key} height={250} radius="md" />)}
        {clusters.data?.map((cluster) => (
          <ClusterCard key={cluster.id} cluster={cluster} mayWrite={mayWrite} />
        ))}
      </SimpleGrid>
    </Page>
  );
}
