/** The five steps of the tour: each points at something that stands in the header of every page. */

export interface Step {
  /** `data-testid` of what the step points at. */
  target: string;
  title: string;
  text: string;
}

export const STEPS: readonly Step[] = [
  {
    target: 'nav-clusters',
    title: 'Clusters',
    text: 'Draw devices, switches and links, or start from a ready cluster. The advisor there ranks all methods on it.',
  },
  {
    target: 'nav-new-run',
    title: 'New run',
    text: 'Choose a cluster, a model and a method. Its latency is predicted before anything starts.',
  },
  {
    target: 'nav-runs',
    title: 'Runs',
    text: 'Open a run while it goes on: change links and devices, and see tokens and timelines answer. Afterwards its report says where the time went.',
  },
  {
    target: 'nav-experiments',
    title: 'Experiments',
    text: 'Vary methods, rates or seeds in one go, as figures with intervals. The published figures of five papers are there too.',
  },
  {
    target: 'user-menu',
    title: 'Your account',
    text: 'API tokens for notebooks and programs, your password, and this tour again.',
  },
];
