import { Text } from '@mantine/core';
import type { RunDetail } from '@/api/types';
import { ClusterPicture } from '@/cluster/ClusterPicture';
import { Panel } from '@/components/Panel';
import { AllocationView } from '@/run/allocation/AllocationView';
import classes from './compare.module.css';

/** The cluster of every run, and what each device held and computed, side by side. */
export function Placements({ runs }: { runs: RunDetail[] }) {
  return (
    <Panel title="Clusters and placements" testId="placements">
      <div className={classes.placements}>
        {runs.map((run) => {
          const plan = run.report?.plan ?? run.plan;
          return (
            <div key={run.id}>
              <Text size="sm" fw={600}>
                {run.id} {run.name}
              </Text>
              <Text size="xs" c="dimmed" mb={6}>
                {run.strategy} on {run.cluster_name}
              </Text>
              <ClusterPicture spec={run.spec.cluster} width={360} height={150} />
              {plan && (
                <AllocationView
                  plan={plan}
                  model={run.spec.model}
                  devices={run.spec.cluster.devices.map((device) => device.name)}
                  over
                  title={`Allocation of run ${run.id}`}
                />
              )}
            </div>
          );
        })}
      </div>
    </Panel>
  );
}
