import type { ComponentProps } from 'react';
import { positionsOf } from './autoLayout';
import { Picture } from './Picture';

/** The picture of a cluster whose nodes have no positions yet. */
export function ArrangedPicture(props: Omit<ComponentProps<typeof Picture>, 'places'>) {
  return <Picture {...props} places={positionsOf(props.spec, props.layout)} />;
}
