import { Anchor, Button, Card, Group, Skeleton, Text } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { sentence } from '@/api/client';
import { useMayWrite } from '@/api/queries';
import { ErrorPanel } from '@/components/ErrorPanel';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import classes from './start.module.css';
import { DEMO, useDemo } from './useDemo';

/** The demo cluster with a button that runs the demo model on it. */
export function Demo() {
  const mayWrite = useMayWrite();
  const { cluster, model, strategy, go, pending, busy, failed, refused } = useDemo();
  if (failed) return <ErrorPanel message={sentence(failed)} />;
  if (pending) return <Skeleton height={420} radius="md" />;
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
        {refused && <ErrorPanel message={sentence(refused)} />}
        <Group gap="sm" mt={refused ? 'sm' : 0}>
          <Button
            leftSection={<IconPlayerPlay size={17} />}
            onClick={go}
            disabled={!mayWrite}
            loading={busy}
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
