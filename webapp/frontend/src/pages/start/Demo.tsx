import { Anchor, Button, Card, Group, Skeleton, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { Link, useNavigate } from 'react-router';
import { api, sentence } from '@/api/client';
import { useCatalogue, useChange, useClusters, useMayWrite } from '@/api/queries';
import type { RunRequest } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { type Draft, FIRST_DRAFT, firstCluster, toRequest } from '@/run/request/draft';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import classes from './start.module.css';

/** Tensor parallelism uses the links most; dilation 8 gives half a minute to watch the run and change it. */
const DEMO: Draft = {
  ...FIRST_DRAFT,
  strategy: 'megatron',
  newTokens: 64,
  dilationKind: 'fixed',
  dilation: 8,
};

/** The demo cluster with a button that runs the demo model on it. */
export function Demo() {
  const navigate = useNavigate();
  const mayWrite = useMayWrite();
  const clusters = useClusters();
  const catalogue = useCatalogue();
  const start = useChange('runs', (request: RunRequest) => api.post<{ id: number }>('/runs', request));
  const id = clusters.data && firstCluster(clusters.data, null);
  const cluster = clusters.data?.find((row) => row.id === id);
  const model = catalogue.data?.models.find((row) => row.name === DEMO.model);
  const strategy = catalogue.data?.strategies.find((row) => row.name === DEMO.strategy);
  const failed = clusters.error ?? catalogue.error;
  if (failed) return <ErrorPanel message={sentence(failed)} />;
  if (clusters.isPending || catalogue.isPending) return <Skeleton height={420} radius="md" />;
  if (!cluster) {
    return (
      <Card padding="xl">
        <Text mb="md">There is no cluster yet: draw one first.</Text>
        <Button component={Link} to="/clusters/new" w="fit-content">
          Draw a cluster
        </Button>
      </Card>
    );
  }
  const go = () =>
    start.mutate(toRequest({ ...DEMO, clusterId: cluster.id }, model), {
      onSuccess: (run) => navigate(`/runs/${run.id}`),
    });
  return (
    <Card padding={0} data-testid="demo">
      <div className={classes.picture}>
        <ClusterPicture spec={cluster.spec} layout={cluster.layout} width={560} height={280} labels />
      </div>
      <div className={classes.demo}>
        <Group justify="space-between" mb={4}>
          <Text fw={600}>{cluster.title || cluster.name}</Text>
          <Anchor component={Link} to={`/clusters/${cluster.id}`} size="sm">
            Open it
          </Anchor>
        </Group>
        <Text size="sm" c="dimmed" mb="md">
          {model?.title ?? DEMO.model}, {strategy?.title ?? DEMO.strategy}: “{DEMO.prompt}…”, {DEMO.newTokens}{' '}
          tokens, {DEMO.dilation} times slower than real time, so that you can watch the run and change it.
        </Text>
        {start.error && <ErrorPanel message={sentence(start.error)} />}
        <Group gap="sm" mt={start.error ? 'sm' : 0}>
          <Button
            leftSection={<IconPlayerPlay size={17} />}
            onClick={go}
            disabled={!mayWrite}
            loading={start.isPending || start.isSuccess}
            data-testid="start-demo"
          >
            Run it now
          </Button>
          {mayWrite ? (
            <Button
              variant="default"
              component={Link}
              to={`/runs/new?cluster=${cluster.id}`}
              data-testid="demo-choose"
            >
              Choose other settings
            </Button>
          ) : (
            <Text size="sm" c="dimmed">
              Starting runs needs the role operator.
            </Text>
          )}
        </Group>
      </div>
    </Card>
  );
}
