import type { Schemas } from './schemas';

export type Fleet = Schemas['FleetOut'];
export type FleetWorker = Schemas['WorkerOut'];
export type WaitingRun = Schemas['WaitingRun'];
export type CalibratedMachine = Schemas['MachineOut'];
