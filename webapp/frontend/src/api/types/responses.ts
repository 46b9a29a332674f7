/** Answers of the API about runs: names for the generated types. */
import type { RunRequest, RunSpec } from './run';
import type { Schemas } from './schemas';

export type RunRow = Schemas['RunRow'];

/**
 * A run as the server has stored it; `spec` is null if it cannot be read, and `problems` says why. `request` is
 * what was asked for, its cluster frozen: asking it again gives the same run.
 */
export type StoredRun = Omit<Schemas['RunDetail'], 'request'> & { request: RunRequest };

/** A run whose specification can be read: what pages show. */
export type RunDetail = StoredRun & { spec: RunSpec };

export function isReadable(run: StoredRun): run is RunDetail {
  return run.spec !== null;
}

export type PredictResult = Schemas['PredictionOut'];
