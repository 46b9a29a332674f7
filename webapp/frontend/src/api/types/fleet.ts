import type { Schemas } from './schemas';

export type Fleet = Schemas['FleetOut'];
export type FleetWorker = Schemas['WorkerOut'];
export type Holder = Schemas['Holder'];
export type WaitingRun = Schemas['WaitingRun'];
export type AddedModel = Schemas['AddedModel'];
export type AddedModels = Schemas['AddedModels'];
export type Board = Schemas['NodeOut'];
export type NewBoard = Schemas['NewNode'];
export type CalibratedMachine = Schemas['MachineOut'];
