import { ActionIcon, Anchor, Card, Group, Menu, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { IconCopy, IconDots, IconFlask, IconPlayerPlay, IconTrash } from '@tabler/icons-react';
import { Link } from '@/components/navigation';
import { api, sentence } from '@/api/client';
import { useChange, useClusters } from '@/api/queries';
import type { ClusterRow } from '@/api/types';
import { useConfirm } from '@/components/useConfirm';
import { useNow } from '@/components/useNow';
import { ago } from '@/format/units';
import { freeName } from '@/cluster/drawing';
import { ExportItems } from '@/cluster/ExportItems';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import classes from './ClusterCard.module.css';

/** One stored cluster: picture, title, size, and a menu of actions. */
export function ClusterCard({ cluster, mayWrite }: { cluster: ClusterRow; mayWrite: boolean }) {
  const { id, name, title, spec, layout } = cluster;
  const now = useNow();
  return (
    <Card padding={0} className={classes.card} data-testid={`cluster-${name}`}>
      <Link to={`/clusters/${id}`} className={classes.picture} aria-label={`Open ${name}`}>
        <ClusterPicture spec={spec} layout={layout} width={300} height={150} />
      </Link>
      <div className={classes.text}>
        <Group justify="space-between" wrap="nowrap" gap="xs">
          <Anchor component={Link} to={`/clusters/${id}`} fw={600} c="var(--loom-text)" truncate>
            {title || name}
          </Anchor>
          <CardMenu cluster={cluster} mayWrite={mayWrite} />
        </Group>
        <Text size="sm" c="dimmed" lineClamp={2} mih={40}>
          {spec.description || 'No description.'}
        </Text>
        <Group justify="space-between" mt={8} gap="xs">
          <Text size="xs" c="dimmed">
            <span className="mono">{name}</span> · {plural(cluster.num_devices, 'device')},{' '}
            {plural(cluster.num_links, 'link')}
          </Text>
          <Text size="xs" c="dimmed">
            {cluster.template ? 'template' : cluster.owner} · {ago(cluster.updated_at, now)}
          </Text>
        </Group>
      </div>
    </Card>
  );
}

function CardMenu({ cluster, mayWrite }: { cluster: ClusterRow; mayWrite: boolean }) {
  const { id, name, spec, layout } = cluster;
  const others = useClusters().data ?? [];
  const copy = useChange('clusters', () => {
    const free = freeName(
      others.map((row) => row.name),
      name.replace(/-\d+$/, '').slice(0, 27),
    );
    return api.post('/clusters', {
      spec: { ...spec, name: free, title: spec.title && `${spec.title} (copy)` },
      layout,
    });
  });
  const remove = useChange('clusters', () => api.delete(`/clusters/${id}`));
  const [dialog, confirm] = useConfirm();
  const fail = (error: Error) => notifications.show({ color: 'red', message: sentence(error) });
  const askAndRemove = () =>
    confirm({
      title: `Delete ${name}?`,
      text: 'Runs keep their own copy of the cluster. The drawing cannot be restored.',
      action: 'Delete',
      onConfirm: () => remove.mutate(undefined, { onError: fail }),
    });
  return (
    <>
      {dialog}
      <Menu position="bottom-end" width={220}>
        <Menu.Target>
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label={`Actions for ${name}`}
            data-testid={`cluster-menu-${name}`}
          >
            <IconDots size={17} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item
            leftSection={<IconPlayerPlay size={15} />}
            component={Link}
            to={`/runs/new?cluster=${id}`}
            data-testid={`run-${name}`}
          >
            New run on it
          </Menu.Item>
          <Menu.Item
            leftSection={<IconFlask size={15} />}
            component={Link}
            to={`/experiments/new?cluster=${id}`}
            data-testid={`experiment-on-${name}`}
          >
            New experiment on it
          </Menu.Item>
          {mayWrite && (
            <>
              <Menu.Item
                leftSection={<IconCopy size={15} />}
                onClick={() => copy.mutate(undefined, { onError: fail })}
                data-testid={`copy-${name}`}
              >
                Duplicate
              </Menu.Item>
              <Menu.Item
                leftSection={<IconTrash size={15} />}
                color="red"
                onClick={askAndRemove}
                disabled={cluster.locked !== null}
                title={cluster.locked ?? undefined}
                data-testid={`delete-${name}`}
              >
                Delete
              </Menu.Item>
            </>
          )}
          <Menu.Divider />
          <ExportItems id={id} name={name} />
        </Menu.Dropdown>
      </Menu>
    </>
  );
}

const plural = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`;
