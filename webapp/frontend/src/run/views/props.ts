/** What every view of a method gets. */
import type { DeviceSpec, ModelSpec, Plan } from '@/api/types';
import type { RunData } from '@/run/data/runData';

export interface ViewProps {
  plan: Plan;
  model: ModelSpec;
  devices: readonly DeviceSpec[];
  /** What the run has told so far; null for a plan that nobody runs yet. */
  data: RunData | null;
  /** Changes when `data`, which is mutable, has more: then the view is drawn again. */
  version: number;
}
