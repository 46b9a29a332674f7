import { type ComponentType, lazy } from 'react';

const styles = () => import('@/theme/moreStyles');

/** A component that is loaded when it is first shown, or before by `load`, together with the styles that only such
 * components need. */
export function later<Props>(component: () => Promise<ComponentType<Props>>) {
  const load = async () => ({ default: (await Promise.all([component(), styles()]))[0] });
  return Object.assign(lazy(load), { load });
}
