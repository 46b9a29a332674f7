/** A run's request, its resolved spec and its plan: names for the generated types. */
import type { Schemas } from './schemas';

export type ModelSpec = Schemas['ModelSpec'];
/** Exactly one of `prompt` and `prompt_tokens` is set, none for a model that reads no text. */
export type Workload = Schemas['Workload'];
export type Direction = Schemas['SetRate']['direction'];
export type Scenario = Schemas['Scenario'];
export type RecordedRequests = Schemas['RequestsOut'];
export type Change = Scenario['changes'][number];

/** A change of a running cluster, now. */
export type LiveCommand = Timeless<Change>;

type Timeless<T> = T extends unknown ? Omit<T, 'at_s'> : never;

export type RunSpec = Schemas['RunSpec'];
/** After a device's failure: plan again over the remaining devices, or end the run. */
export type Failover = RunSpec['failover'];

/** The request for a run: names instead of resolved models and clusters. */
export type RunRequest = Omit<Schemas['RunRequest'], Chosen | 'workload'> & {
  [field in Chosen]-?: NonNullable<Schemas['RunRequest'][field]>;
} & { workload: Partial<Workload> };

/** Fields that may be left out of a request, but that the browser always gives. */
type Chosen = 'params' | 'dilation' | 'seed';

export type RunState = Schemas['RunRow']['status'];

/** Half-open [start, stop) along `axis`; embed, vision and lm_head have layer -1; "all" is the whole part. */
export type Slice = Schemas['Slice'];
export type Part = Slice['part'];
export type Axis = Slice['axis'];
export type HeldSlice = Schemas['HeldSlice'];
export type ComputedSlice = Schemas['ComputedSlice'];
export type Phase = ComputedSlice['phase'];
/** What a strategy decided besides holdings and work, discriminated by `kind`. */
export type PlanLayout = Schemas['Layout'];
export type LayoutKind = PlanLayout['kind'];
/** The layout of this kind, or of these kinds. */
export type LayoutOf<Kind extends LayoutKind> = Extract<PlanLayout, { kind: Kind }>;
export type Plan = Schemas['Plan'];

/** States in which nothing more will happen. */
export function isOver(status: RunState): boolean {
  return status === 'finished' || status === 'failed' || status === 'cancelled';
}

/** A plan made by hand: the parameter `plan` of a strategy. */
export type PlanByHand = Schemas['PlanByHand'];
export type DeviceShare = PlanByHand['devices'][number];
/** A run's plan as a person may edit it, and what it divides. */
export type EditablePlan = Schemas['EditablePlan'];
