import { Anchor, Text } from '@mantine/core';
import { Link } from '@/components/navigation';
import type { ClusterRow, ClusterSpec } from '@/api/types';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import classes from './newRun.module.css';

interface Props {
  clusters: ClusterRow[];
  clusterId: number | null;
  frozen: ClusterSpec | null;
  onChoose: (id: number | null, frozen: ClusterSpec | null) => void;
  /** The cluster of the earlier run that this draft was copied from, if any. */
  earlier: ClusterSpec | null;
  /** Where that cluster is from. */
  about: string;
}

export function ClusterPicker({ clusters, clusterId, frozen, onChoose, earlier, about }: Props) {
  if (clusters.length === 0 && !earlier) {
    return (
      <Text size="sm" c="dimmed">
        There is no cluster yet:{' '}
        <Anchor component={Link} to="/clusters/new">
          draw one
        </Anchor>
        .
      </Text>
    );
  }
  return (
    <div className={classes.strip} role="radiogroup" aria-label="Cluster">
      {earlier && (
        <button
          type="button"
          role="radio"
          aria-checked={frozen !== null}
          className={classes.option}
          onClick={() => onChoose(null, earlier)}
          data-testid="choose-cluster-frozen"
        >
          <ClusterPicture spec={earlier} width={128} height={58} />
          <b>{earlier.name}</b>
          <small>{about}</small>
        </button>
      )}
      {clusters.map(({ id, name, title, spec, layout }) => (
        <button
          key={id}
          type="button"
          role="radio"
          aria-checked={!frozen && id === clusterId}
          className={classes.option}
          onClick={() => onChoose(id, null)}
          data-testid={`choose-cluster-${name}`}
          title={spec.description}
        >
          <ClusterPicture spec={spec} layout={layout} width={128} height={58} />
          <b>{name}</b>
          <small>{title || `${spec.devices.length} devices`}</small>
        </button>
      ))}
    </div>
  );
}
