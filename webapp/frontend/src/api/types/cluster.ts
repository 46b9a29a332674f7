/** Clusters and how they are drawn: names for the generated types. */
import type { Schemas } from './schemas';

export type ComputeModel = DeviceSpec['compute_model'];
export type DeviceSpec = Schemas['DeviceSpec'];
/** `bit_per_s` holds a→b and, unless `reverse_bit_per_s` says otherwise, b→a. Named `a--b`. */
export type LinkSpec = Schemas['LinkSpec'];
export type ClusterSpec = Schemas['ClusterSpec'];
/** How a cluster is drawn; kept apart from what it is. */
export type CanvasLayout = Schemas['CanvasLayout'];
export type ClusterRow = Schemas['ClusterOut'];
export type Problem = Schemas['Problem'];
export type Validation = Schemas['Validation'];
