import { type ComponentType, lazy } from 'react';

const styles = () => import('@/theme/moreStyles');

/** A component that is loaded when it is first shown, or before by `load`, together with the styles that only such
 * components need. These are asked for first: of two rules of equal weight that of the later sheet holds, and it must
 * be the page's own. */
export function later<Props>(component: () => Promise<ComponentType<Props>>) {
  const load = async () => ({ default: (await Promise.all([styles(), component()]))[1] });
  return Object.assign(lazy(load), { load });
}
