import { type ComponentProps, lazy, Suspense } from 'react';
import type { ClusterPicture as Picture } from '@/cluster/ClusterPicture';

const Loaded = lazy(async () => ({ default: (await import('@/cluster/ClusterPicture')).ClusterPicture }));

/** A picture of a cluster, loaded when one is shown: its layout needs a library that the workbench does without. */
export function ClusterPicture(props: ComponentProps<typeof Picture>) {
  return (
    <Suspense fallback={<div style={{ height: props.height }} />}>
      <Loaded {...props} />
    </Suspense>
  );
}
