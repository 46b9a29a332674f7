/** The draft of a new run: what a person has chosen so far, and the request to the server. */
import type { ClusterSpec, ModelRow, RunRequest, Scenario, Workload } from '@/api/types';

type Given = 'prompt' | 'prompt_tokens' | 'rate_per_s' | 'users' | 'chat';
/** Fields of a service that the form leaves as they are. */
type OfServices = 'idle_wall_s' | 'queue_limit' | 'serve_wall_s';

/** A workload in which each field has a value; a field counts where the pattern and the model have it. */
export type Work = Omit<Required<Workload>, Given | OfServices> & {
  [Key in Given]: NonNullable<Workload[Key]>;
} & Partial<Pick<Workload, OfServices>>;

/** A request by the names that the server has for its fields, and what the form alone knows. Each field has a
 *  value: also one that another choice leaves out of the request. */
export interface Draft extends Omit<Required<RunRequest>, 'params' | 'weights' | 'workload' | 'dilation'> {
  randomWeights: boolean;
  /** Parameters by strategy, kept while another strategy is selected. */
  params: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  promptKind: 'text' | 'length';
  workload: Work;
  /** Whose tokens the prompts of the trace are (`whoseTokens`); null: the seed decides them. */
  tokensOf: string | null;
  dilationKind: 'auto' | 'native' | 'nodes' | 'fixed';
  dilation: number;
}

export const FIRST_WORK: Work = {
  prompt: 'When a function is called, its',
  chat: true,
  prompt_tokens: 64,
  image: null,
  new_tokens: 24,
  assumed_tokens: 0,
  kv_cache: true,
  temperature: 0,
  top_p: 1,
  top_k: 0,
  requests: 1,
  pattern: 'sporadic',
  rate_per_s: 1,
  users: 4,
  think_s: 0,
  max_batch: 4,
  scheduler: 'fcfs',
  chunk_tokens: 64,
  trace: [],
  slo_first_token_s: null,
  slo_per_token_s: null,
  token_limit_s: null,
};

export const FIRST_DRAFT: Draft = {
  cluster_id: null,
  cluster: null,
  model: 'demo-lm',
  randomWeights: false,
  weight_bits: null,
  activation_bits: 0,
  draft_model: null,
  likely_acceptance: 0.7,
  strategy: 'voltage',
  params: {},
  promptKind: 'text',
  workload: FIRST_WORK,
  tokensOf: null,
  scenario: { changes: [] },
  dilationKind: 'auto',
  dilation: 10,
  compute_model: null,
  board_links: 'drawn',
  failover: 'replan',
  silence_s: 2,
  seed: 0,
  name: '',
  notes: '',
  tags: [],
};

/** What another model may not have. */
export const OF_ONE_MODEL = { draft_model: null, activation_bits: 0 } as const;

/** A draft that the browser has kept, maybe of another version of this page: of that, the fields that there are. */
export function kept(stored: object): Draft {
  const known = Object.entries(stored).filter(([key]) => key in FIRST_DRAFT);
  const draft: Draft = { ...FIRST_DRAFT, ...Object.fromEntries(known) };
  return { ...draft, workload: { ...FIRST_WORK, ...draft.workload } };
}

export const withWork = (draft: Draft, patch: Partial<Work>): Draft => ({
  ...draft,
  workload: { ...draft.workload, ...patch },
});

/** Whether requests may wait for others that came before. */
export const isQueued = ({ pattern }: Work) => pattern !== 'sporadic' && pattern !== 'bursty';

/** Whether prompts pass in parts. */
export const isChunked = (work: Work) => isQueued(work) && work.scheduler === 'chunked';

/** Whether a second model drafts tokens, or first layers of the model do. */
export function drafts({ draft_model, strategy, params }: Draft): boolean {
  return draft_model !== null || Number(params[strategy]?.draft_layers ?? 0) > 0;
}

/** The draft of who has made none: a model that answers questions, where one is here. */
export function firstDraft(models: readonly ModelRow[]): Draft {
  const answers = models.find((model) => model.trained && model.chats);
  return answers
    ? { ...withWork(FIRST_DRAFT, { prompt: 'Why is the sky blue?' }), model: answers.name }
    : FIRST_DRAFT;
}

/** A model that is not loaded yet counts as a language model. */
export function readsText(model: ModelRow | undefined): boolean {
  return model?.reads_text ?? true;
}

/** What the draft still lacks, in one sentence; null if it is complete. */
export function missing(draft: Draft, model: ModelRow | undefined): string | null {
  if (draft.cluster_id === null && draft.cluster === null) return 'Choose a cluster.';
  if (!draft.model) return 'Choose a model.';
  if (!draft.strategy) return 'Choose a strategy.';
  const { pattern, prompt, trace } = draft.workload;
  const traced = pattern === 'trace';
  const prompted = !traced && pattern !== 'serve';
  if (readsText(model) && prompted && draft.promptKind === 'text' && !prompt.trim())
    return 'Write a prompt, or choose random tokens.';
  if (!traced) return null;
  const { tokensOf } = draft;
  if (trace.length === 0) return 'Choose the file of the requests.';
  if (tokensOf && tokensOf !== whoseTokens(draft, model))
    return `The prompts have the tokens of ${tokensOf}: choose their file again.`;
  return null;
}

/** "random" where the weights are made, null for the model's own. */
export const weightsOf = (draft: Draft, model: ModelRow | undefined) =>
  draft.randomWeights || model?.trained === false ? 'random' : null;

/** Whose tokens a text becomes in this run: random weights have no tokenizer. */
export const whoseTokens = (draft: Draft, model: ModelRow | undefined): string =>
  tokenizerOf(draft.model, weightsOf(draft, model));

const tokenizerOf = (model: string, weights: RunRequest['weights']): string =>
  weights === 'random' ? `${model} with random weights` : model;

/** The model and cluster for which strategies are checked; null while one is missing. */
export function pairOf({ cluster, cluster_id, model, weight_bits, activation_bits, draft_model }: Draft) {
  if (!model || (cluster === null && cluster_id === null)) return null;
  return {
    model,
    weight_bits,
    activation_bits,
    draft_model,
    ...(cluster ? { cluster } : { cluster_id }),
  };
}

/** The models that can draft for `model`: smaller ones that generate text of the same tokens. */
export const draftsFor = (models: readonly ModelRow[], model: ModelRow | undefined): ModelRow[] =>
  model?.has_head && model.causal && model.image_rows === 0
    ? models.filter(
        (row) =>
          row.has_head &&
          row.causal &&
          row.image_rows === 0 &&
          row.vocab_size === model.vocab_size &&
          row.num_parameters < model.num_parameters,
      )
    : [];

/** The fields of the workload that count in this draft. */
function workloadOf({ workload, promptKind }: Draft, model: ModelRow | undefined): RunRequest['workload'] {
  const { pattern, temperature } = workload;
  const generates = model?.has_head ?? true;
  const [traced, serves, queued] = [pattern === 'trace', pattern === 'serve', isQueued(workload)];
  const asksText = readsText(model) && promptKind === 'text' && !serves;
  const counts: Record<keyof Work, boolean> = {
    prompt: !traced && asksText,
    chat: !traced && asksText && !workload.chat,
    prompt_tokens: !traced && readsText(model) && !asksText,
    image: (model?.image_rows ?? 0) > 0,
    new_tokens: !traced && generates,
    requests: !traced,
    assumed_tokens: generates,
    kv_cache: generates && !serves,
    temperature: generates && temperature > 0,
    top_p: generates && temperature > 0,
    top_k: generates && temperature > 0,
    pattern: true,
    rate_per_s: pattern === 'poisson',
    users: pattern === 'users',
    think_s: pattern === 'users',
    trace: traced,
    max_batch: queued,
    scheduler: queued,
    chunk_tokens: isChunked(workload),
    slo_first_token_s: queued,
    slo_per_token_s: queued,
    token_limit_s: true,
    idle_wall_s: serves,
    queue_limit: serves,
    serve_wall_s: serves,
  };
  const asked = Object.fromEntries(Object.entries(workload).filter(([key]) => counts[key as keyof Work]));
  return { ...(!generates && !traced && { new_tokens: 0 }), ...asked };
}

/** The devices that the server plays, as they are drawn, where others are boards. */
export const playedIn = ({ devices }: Pick<ClusterSpec, 'devices'>) =>
  devices.some(({ node }) => node) ? devices.filter(({ node }) => !node) : [];

/** The request for the run in `cluster`, which the draft may only name. */
export function toRequest(
  draft: Draft,
  model: ModelRow | undefined,
  cluster: ClusterSpec | null = draft.cluster,
): RunRequest {
  const { randomWeights: _, promptKind: _kind, tokensOf: _whose, dilationKind, ...asked } = draft;
  const { cluster: own, cluster_id, board_links, ...rest } = asked;
  const choosesLinks = dilationKind === 'nodes' && !(cluster && playedIn(cluster).length > 0);
  return {
    ...rest,
    ...(own ? { cluster: own } : { cluster_id }),
    weights: weightsOf(draft, model),
    params: { ...draft.params[draft.strategy] },
    workload: workloadOf(draft, model),
    dilation: dilationKind === 'fixed' ? draft.dilation : dilationKind,
    ...(choosesLinks && board_links === 'given' && { board_links }),
  };
}

/** The draft that repeats an earlier run: `toRequest` of it is that run's request. */
export function fromRequest(request: RunRequest, scenario?: Scenario): Draft {
  const { workload, dilation, weights, params, ...rest } = request;
  const fixed = typeof dilation === 'number';
  const told = workload.trace?.some(({ tokens }) => tokens?.length);
  return {
    ...FIRST_DRAFT,
    ...given(rest),
    ...(scenario && { scenario }),
    randomWeights: weights === 'random',
    params: { [request.strategy]: params },
    promptKind: typeof workload.prompt === 'string' ? 'text' : 'length',
    workload: { ...FIRST_WORK, ...given(workload) },
    tokensOf: told ? tokenizerOf(request.model, weights) : null,
    dilationKind: fixed ? 'fixed' : dilation,
    dilation: fixed ? dilation : FIRST_DRAFT.dilation,
  };
}

/** The fields that have a value. */
const given = <Fields extends object>(fields: Fields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value != null)) as {
    [Key in keyof Fields]: NonNullable<Fields[Key]>;
  };

/** The stored cluster to start with: the one with id `requested`, else the demo cluster, else the first. */
export function firstCluster(
  clusters: readonly { id: number; name: string }[],
  requested: number | null,
): number | null {
  const has = (id: number | null) => clusters.some((row) => row.id === id);
  if (requested !== null && has(requested)) return requested;
  return (clusters.find((row) => row.name === 'lab-3') ?? clusters[0])?.id ?? null;
}
