import { lazy, Suspense } from 'react';
import type { CanvasLayout } from '@/api/types';
import { Picture, type PictureProps } from './Picture';
import { knownPlaces } from './places';

const ArrangedPicture = lazy(async () => ({ default: (await import('./ArrangedPicture')).ArrangedPicture }));

type Props = Omit<PictureProps, 'places'> & { layout?: CanvasLayout };

/** A static picture of a cluster. The library that arranges any other cluster is loaded when one needs it. */
export function ClusterPicture(props: Props) {
  const places = knownPlaces(props.spec, props.layout);
  if (places) return <Picture {...props} places={places} />;
  return (
    <Suspense fallback={<div style={{ height: props.height }} />}>
      <ArrangedPicture {...props} />
    </Suspense>
  );
}
