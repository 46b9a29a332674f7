/** Reports of runs and their parts: names for the generated types. */
import type { Schemas } from './schemas';

export type DeviceReport = Schemas['DeviceReport'];
/** A piece of a run's critical path. */
export type PathPiece = Schemas['PathPiece'];
export type LinkReport = Schemas['LinkReport'];
export type ClassReport = Schemas['ClassReport'];
/** Where the end-to-end time went; the parts add up to `latency_s`. */
export type Attribution = Schemas['Attribution'];
export type Correctness = Schemas['Correctness'];
export type Fidelity = Schemas['Fidelity'];
export type OutcomeKind = Outcome['kind'];
export type Outcome = Schemas['Outcome'];
/** A device that failed or joined, and how the run continued; the times follow each other. */
export type Recovery = Schemas['Recovery'];
/** What was predicted of a run, three times, each knowing other changes of the cluster. */
export type Predictions = Schemas['Predictions'];
export type RunReport = Schemas['RunReport'];
