import type { Showcase } from '@/api/types';

/** The run of the start page: the first that this machine has a model for. */
export const demoOf = (showcases: readonly Showcase[] | undefined) =>
  showcases?.find(({ place }) => place === 'demo');
