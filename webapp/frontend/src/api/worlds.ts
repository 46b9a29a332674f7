/** The worlds that the figures of a run come from, as the server names them. */
import type { Schemas } from './types/schemas';

export type World = Schemas['RunReport']['world'];

/** From the quickest to the slowest. */
export const WORLDS: readonly World[] = ['predicted', 'calculated', 'emulated', 'native', 'nodes'];

/**
 * Whether the times were measured: emulated runs are paced to the devices of their cluster, native ones and
 * those on boards are not.
 */
export const isMeasured = (world: string): boolean => ['emulated', 'native', 'nodes'].includes(world);
