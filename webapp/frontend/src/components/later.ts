import { type ComponentType, lazy } from 'react';

const styles = () => import('@/theme/moreStyles');

/** A component that is loaded when it is first shown, together with the styles that only such components need. */
export function later<Props>(load: () => Promise<ComponentType<Props>>) {
  return lazy(async () => ({ default: (await Promise.all([load(), styles()]))[0] }));
}
