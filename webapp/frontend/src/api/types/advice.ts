/** What the advisor says, and the showcases: names for the generated types. */
import type { RunRequest } from './run';
import type { Schemas } from './schemas';

/** A strategy's figures by prediction; all null where it has no plan, and `reason` says why. */
export type Assessment = Schemas['Assessment'];
export type Advice = Schemas['AdviceOut'];
/** What a single change of the cluster would do. */
export type AdviceChange = Schemas['Change'];
export type Objective = Advice['by'];

/** A run that shows what distributing, or one method, is good for, and runs beside it. */
export type Showcase = Omit<Schemas['ShowcaseOut'], 'request' | 'others'> & {
  request: RunRequest;
  others: { name: string; title: string; request: RunRequest }[];
};

/** What binds each device under one plan, found by trying. */
export type Why = Schemas['Why'];
export type DeviceReason = Schemas['DeviceReason'];
/** What a person is told to try in a guided run. */
export type ShowcaseGuide = Schemas['Guide'];
