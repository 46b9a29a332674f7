import { Anchor, Button, Card, Group, SimpleGrid, Skeleton, Text, Title } from '@mantine/core';
import { IconPlayerPlay } from '@tabler/icons-react';
import { Link, useNavigate } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange, useClusters, useMayWrite, useShowcases } from '@/api/queries';
import type { RunRequest, Showcase } from '@/api/types';
import { ErrorPanel } from '@/components/ErrorPanel';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import classes from './start.module.css';

/** One card per showcase: what it shows, what to expect, and the runs that it compares; compact without pictures and
 * expectations. */
export function Showcases({ compact = false }: { compact?: boolean }) {
  const { data, error } = useShowcases();
  const mayWrite = useMayWrite();
  return (
    <section>
      <Title order={2} fz={compact ? 14 : 18} mb={compact ? 0 : 4}>
        Showcases
      </Title>
      <Text size="sm" c="dimmed" mb={compact ? 'sm' : 'md'} maw={720}>
        For every paper’s method a cluster on which it does what it was invented for, with other runs beside
        it.{mayWrite ? '' : ' Starting one needs the role operator: ask an administrator.'}
      </Text>
      {error && <ErrorPanel message={sentence(error)} />}
      <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="md">
        {!data &&
          !error &&
          [1, 2, 3].map((key) => <Skeleton key={key} height={compact ? 120 : 330} radius="md" />)}
        {data?.map((showcase) => (
          <ShowcaseCard key={showcase.name} showcase={showcase} compact={compact} />
        ))}
      </SimpleGrid>
    </section>
  );
}

function ShowcaseCard({ showcase, compact }: { showcase: Showcase; compact: boolean }) {
  const navigate = useNavigate();
  const mayWrite = useMayWrite();
  const start = useChange('runs', (request: RunRequest) => api.post<{ id: number }>('/runs', request));
  const { name, title, look_for, expected, request, emulated, others } = showcase;
  const cluster = request.cluster;
  const drawn = useClusters().data?.find((row) => row.name === cluster?.name);
  const go = () => start.mutate(request, { onSuccess: ({ id }) => navigate(`/runs/${id}`) });
  return (
    <Card padding={0} className={classes.showcase} data-testid={`showcase-${name}`}>
      {!compact && (
        <div className={classes.picture}>
          {cluster && <ClusterPicture spec={cluster} layout={drawn?.layout} width={360} height={120} />}
        </div>
      )}
      <div className={classes.words}>
        <Text size="xs" c="dimmed">
          {request.strategy} with {request.model} on {cluster?.name}
        </Text>
        <Text fw={600} size={compact ? 'sm' : 'md'}>
          {title}
        </Text>
        {!compact && <Text size="sm">{look_for}</Text>}
        {!compact && (
          <Text size="sm" c="dimmed">
            {expected}
          </Text>
        )}
        {mayWrite && !compact && (
          <Text size="xs" c="dimmed">
            Beside it:{' '}
            {others.map((other, index) => (
              <span key={other.name}>
                {index > 0 && ', '}
                <Anchor component={Link} inherit to={`/runs/new?showcase=${name}&other=${other.name}`}>
                  {other.title}
                </Anchor>
              </span>
            ))}
          </Text>
        )}
        {start.error && <ErrorPanel message={sentence(start.error)} />}
        {mayWrite && (
          <Group gap="xs" mt="auto" pt="xs">
            {emulated && (
              <Button
                size="xs"
                leftSection={<IconPlayerPlay size={15} />}
                onClick={go}
                loading={start.isPending || start.isSuccess}
                data-testid={`start-showcase-${name}`}
              >
                Run it
              </Button>
            )}
            <Button
              size="xs"
              variant={emulated ? 'default' : 'filled'}
              component={Link}
              to={`/runs/new?showcase=${name}`}
              data-testid={`open-showcase-${name}`}
            >
              {emulated ? 'Settings' : 'Predict it'}
            </Button>
          </Group>
        )}
      </div>
    </Card>
  );
}
