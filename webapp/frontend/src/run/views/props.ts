/** What every view of a strategy gets. `LayoutT` is the type of layout that it draws. */
import type { DeviceSpec, ModelSpec, Plan, PlanLayout } from '@/api/types';
import type { RunData } from '@/run/data/runData';

export interface ViewProps<LayoutT extends PlanLayout = PlanLayout> {
  layout: LayoutT;
  holdings: Plan['holdings'];
  model: ModelSpec;
  devices: readonly DeviceSpec[];
  /** The run's data so far; null for a plan that is not running. */
  data: RunData | null;
  /** Changes when `data`, which is mutable, has more, so that the view renders again. */
  version: number;
}

/** The name of a device by its rank. */
export function nameOf(devices: readonly DeviceSpec[], rank: number): string {
  return devices[rank]?.name ?? `device ${rank}`;
}
