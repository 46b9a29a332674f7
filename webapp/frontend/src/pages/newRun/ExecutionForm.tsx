import { Fields } from '@/run/params/Fields';
import type { Field } from '@/run/params/schemaFields';
import type { Draft, Work } from '@/run/request/draft';

interface Props {
  draft: Draft;
  /** Whether a device of the cluster is a board. */
  bound: boolean;
  /** The devices beside boards that are none. */
  played: readonly { name: string }[];
  set: (patch: Partial<Draft>) => void;
  setWork: (patch: Partial<Work>) => void;
  errorOf: (path: string) => string | undefined;
}

const ABOUT: Record<Draft['dilationKind'], string> = {
  auto: 'As many real seconds per virtual second as this machine needs to keep the pace of the devices.',
  native: 'No pacing: operations take what this machine needs. Measures the runtime itself.',
  nodes: 'Each device runs on its board, as fast as that is, over the network between them.',
  fixed: 'Real seconds per virtual second.',
};

const ABOUT_LINKS: Record<Draft['board_links'], string> = {
  drawn:
    'Where the network gives more than is drawn, messages take as long as drawn; links can be changed during the run.',
  given: 'Messages are as fast as the network.',
};

/** How the run is executed, in a line. */
export function executionText(draft: Draft): string {
  const dilation =
    draft.dilationKind === 'fixed'
      ? `fixed ${draft.dilation} ×`
      : draft.dilationKind === 'native'
        ? 'native'
        : 'automatic';
  const world = draft.dilationKind === 'nodes' ? 'on the boards' : `dilation ${dilation}`;
  const after = draft.failover === 'replan' ? 'plan again after a failure' : 'end at a failure';
  const { token_limit_s } = draft.workload;
  const limit = token_limit_s ? `, ${token_limit_s} s per token at most` : '';
  return `${world}, seed ${draft.seed}, ${after}${limit}`;
}

type Key = keyof Draft | 'token_limit_s';

const aboutPlayed = (played: Props['played']): string =>
  played.length ? ` The server plays ${played.map(({ name }) => name).join(', ')} as drawn.` : '';

const fieldsOf = (
  { dilationKind: kind, board_links }: Draft,
  bound: boolean,
  played: Props['played'],
): (Field<Key> | false)[] => [
  {
    kind: 'choice',
    key: 'dilationKind',
    label: 'Time dilation',
    help: kind === 'nodes' ? ABOUT.nodes + aboutPlayed(played) : ABOUT[kind],
    looks: 'segments',
    options: [
      { value: 'auto', label: 'Automatic' },
      { value: 'fixed', label: 'Fixed' },
      { value: 'native', label: 'Native' },
      ...(bound || kind === 'nodes' ? [{ value: 'nodes', label: 'On the boards' }] : []),
    ],
  },
  kind === 'fixed' && { kind: 'number', key: 'dilation', label: 'Dilation', min: 0.01, suffix: ' ×' },
  kind === 'nodes' &&
    played.length === 0 && {
      kind: 'choice',
      key: 'board_links',
      label: 'Links between boards',
      help: ABOUT_LINKS[board_links],
      looks: 'segments',
      options: [
        { value: 'drawn', label: 'As drawn' },
        { value: 'given', label: 'As the network is' },
      ],
    },
  {
    kind: 'choice',
    key: 'compute_model',
    label: 'Compute model',
    none: 'own',
    options: [
      { value: 'own', label: 'Each device’s own' },
      { value: 'roofline', label: 'Roofline everywhere' },
      { value: 'serial', label: 'Memory, then compute' },
      { value: 'measured', label: 'Measured, scaled' },
      { value: 'flops', label: 'FLOPs alone' },
    ],
  },
  {
    kind: 'choice',
    key: 'failover',
    label: 'When a device fails',
    options: [
      { value: 'replan', label: 'Plan again and go on' },
      { value: 'stop', label: 'End the run' },
    ],
  },
  { kind: 'number', key: 'silence_s', label: 'Silence timeout', min: 0.001, suffix: ' s' },
  { kind: 'number', key: 'seed', label: 'Seed', integer: true, min: 0 },
  {
    kind: 'number',
    key: 'token_limit_s',
    label: 'Limit on the time of a token',
    help: 'A run in which a token takes longer ends as out of time. LIME’s authors use 40 s.',
    placeholder: 'No limit',
    min: 0.001,
    suffix: ' s',
    optional: true,
  },
];

/** How the run is executed: dilation, compute model, seed, failover and limits. */
export function ExecutionForm({ draft, bound, played, set, setWork, errorOf }: Props) {
  const { token_limit_s } = draft.workload;
  return (
    <Fields<Draft & Pick<Work, 'token_limit_s'>>
      fields={fieldsOf(draft, bound, played)}
      values={{ ...draft, token_limit_s }}
      set={(patch) => ('token_limit_s' in patch ? setWork(patch) : set(patch))}
      errorOf={(key) => errorOf(key === 'token_limit_s' ? `workload.${key}` : key)}
    />
  );
}
