/** The draft of a new run: what a person has chosen so far, and the request to the server. */
import type {
  ClusterSpec,
  ComputeModel,
  Failover,
  ModelRow,
  RunRequest,
  Scenario,
  Workload,
} from '@/api/types';

/** When requests arrive; each number counts for its own pattern. */
export interface Arrivals {
  pattern: Workload['pattern'];
  ratePerSecond: number;
  users: number;
  think_s: number;
  maxBatch: number;
  /** Who is admitted when, and the rows of a step at most where prompts pass in parts. */
  scheduler: NonNullable<Workload['scheduler']>;
  chunkTokens: number;
  trace: NonNullable<Workload['trace']>;
  /** Whose tokens the prompts of the trace are (`whoseTokens`); null: the seed decides them. */
  tokensOf: string | null;
  /** Objectives of goodput, in virtual seconds; null: none. */
  firstToken_s: number | null;
  perToken_s: number | null;
}

export const FIRST_ARRIVALS: Arrivals = {
  pattern: 'sporadic',
  ratePerSecond: 1,
  users: 4,
  think_s: 0,
  maxBatch: 4,
  scheduler: 'fcfs',
  chunkTokens: 64,
  trace: [],
  tokensOf: null,
  firstToken_s: null,
  perToken_s: null,
};

/** How tokens are drawn at random; with the temperature 0 they are the most likely ones. */
export interface Sampling {
  temperature: number;
  topP: number;
  topK: number;
}

export const FIRST_SAMPLING: Sampling = { temperature: 0, topP: 1, topK: 0 };
export const MOST_TEMPERATURE = 10;

const samplingFields = ({ temperature, topP, topK }: Sampling): Partial<Workload> =>
  temperature > 0 ? { temperature, top_p: topP, top_k: topK } : {};

/** Whether requests may wait for others that came before. */
export const isQueued = ({ pattern }: Arrivals) => pattern !== 'sporadic' && pattern !== 'bursty';

/** Whether prompts pass in parts. */
export const isChunked = (arrivals: Arrivals) => isQueued(arrivals) && arrivals.scheduler === 'chunked';

/** The fields of a workload that say when its requests arrive. */
function arrivalFields(arrivals: Arrivals): Partial<Workload> {
  const { pattern } = arrivals;
  if (!isQueued(arrivals)) return { pattern };
  return {
    pattern,
    max_batch: arrivals.maxBatch,
    scheduler: arrivals.scheduler,
    ...(isChunked(arrivals) && { chunk_tokens: arrivals.chunkTokens }),
    slo_first_token_s: arrivals.firstToken_s,
    slo_per_token_s: arrivals.perToken_s,
    ...(pattern === 'poisson' && { rate_per_s: arrivals.ratePerSecond }),
    ...(pattern === 'users' && { users: arrivals.users, think_s: arrivals.think_s }),
    ...(pattern === 'trace' && { trace: arrivals.trace }),
  };
}

function arrivalsOf({ workload, model, weights }: RunRequest): Arrivals {
  const told = workload.trace?.some((request) => request.tokens?.length);
  return {
    pattern: workload.pattern ?? 'sporadic',
    ratePerSecond: workload.rate_per_s ?? FIRST_ARRIVALS.ratePerSecond,
    users: workload.users ?? FIRST_ARRIVALS.users,
    think_s: workload.think_s ?? 0,
    maxBatch: workload.max_batch ?? FIRST_ARRIVALS.maxBatch,
    scheduler: workload.scheduler ?? FIRST_ARRIVALS.scheduler,
    chunkTokens: workload.chunk_tokens ?? FIRST_ARRIVALS.chunkTokens,
    trace: workload.trace ?? [],
    tokensOf: told ? tokenizerOf(model, weights) : null,
    firstToken_s: workload.slo_first_token_s ?? null,
    perToken_s: workload.slo_per_token_s ?? null,
  };
}

export interface Draft {
  clusterId: number | null;
  /** The cluster of an earlier run, as it was then; used instead of a stored one. */
  frozen: ClusterSpec | null;
  model: string;
  randomWeights: boolean;
  /** Bits to which the model's matrices are rounded; null: they are as they are. */
  weightBits: 8 | 4 | null;
  /** The model that drafts tokens for it; null: none. */
  draftModel: string | null;
  /** With which probability a drafted token is the model's own, in predictions. */
  likelyAcceptance: number;
  strategy: string;
  /** Parameters by strategy, kept while another strategy is selected. */
  params: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  promptKind: 'text' | 'length';
  prompt: string;
  /** Whether the prompt is a message where the model has a chat template; else the text to go on with. */
  chat: boolean;
  promptTokens: number;
  /** PNG in the model's size; null: random pictures. */
  image: string | null;
  newTokens: number;
  /** Tokens of a sequence for which the plan is made, prompt and answer; 0: it knows them. */
  assumedTokens: number;
  /** Whether devices keep keys and values from token to token. */
  kvCache: boolean;
  sampling: Sampling;
  requests: number;
  arrivals: Arrivals;
  scenario: Scenario;
  dilationKind: 'auto' | 'native' | 'nodes' | 'fixed';
  dilation: number;
  computeModel: ComputeModel | null;
  failover: Failover;
  silence_s: number;
  /** Virtual seconds; null: no limit. */
  tokenLimit_s: number | null;
  seed: number;
  name: string;
  notes: string;
  tags: readonly string[];
}

/** Whether a second model drafts tokens, or first layers of the model do. */
export function drafts({ draftModel, strategy, params }: Draft): boolean {
  return draftModel !== null || Number(params[strategy]?.draft_layers ?? 0) > 0;
}

export const FIRST_DRAFT: Draft = {
  clusterId: null,
  frozen: null,
  model: 'demo-lm',
  randomWeights: false,
  weightBits: null,
  draftModel: null,
  likelyAcceptance: 0.7,
  strategy: 'voltage',
  params: {},
  promptKind: 'text',
  prompt: 'When a function is called, its',
  chat: true,
  promptTokens: 64,
  image: null,
  newTokens: 24,
  assumedTokens: 0,
  kvCache: true,
  sampling: FIRST_SAMPLING,
  requests: 1,
  arrivals: FIRST_ARRIVALS,
  scenario: { changes: [] },
  dilationKind: 'auto',
  dilation: 10,
  computeModel: null,
  failover: 'replan',
  silence_s: 2,
  tokenLimit_s: null,
  seed: 0,
  name: '',
  notes: '',
  tags: [],
};

/** The draft of who has made none: a model that answers questions, where one is here. */
export function firstDraft(models: readonly ModelRow[]): Draft {
  const answers = models.find((model) => model.trained && model.chats);
  return answers ? { ...FIRST_DRAFT, model: answers.name, prompt: 'Why is the sky blue?' } : FIRST_DRAFT;
}

/** A model that is not loaded yet counts as a language model. */
export function readsText(model: ModelRow | undefined): boolean {
  return model?.reads_text ?? true;
}

/** What the draft still lacks, in one sentence; null if it is complete. */
export function missing(draft: Draft, model: ModelRow | undefined): string | null {
  if (draft.clusterId === null && draft.frozen === null) return 'Choose a cluster.';
  if (!draft.model) return 'Choose a model.';
  if (!draft.strategy) return 'Choose a strategy.';
  const traced = draft.arrivals.pattern === 'trace';
  const prompted = !traced && draft.arrivals.pattern !== 'serve';
  if (readsText(model) && prompted && draft.promptKind === 'text' && !draft.prompt.trim())
    return 'Write a prompt, or choose random tokens.';
  if (!traced) return null;
  const { trace, tokensOf } = draft.arrivals;
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
export function pairOf({ frozen, clusterId, model, weightBits, draftModel }: Draft) {
  if (!model || (frozen === null && clusterId === null)) return null;
  return {
    model,
    weight_bits: weightBits,
    draft_model: draftModel,
    ...(frozen ? { cluster: frozen } : { cluster_id: clusterId }),
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

export function toRequest(draft: Draft, model: ModelRow | undefined): RunRequest {
  const generates = model?.has_head ?? true;
  const traced = draft.arrivals.pattern === 'trace';
  const serves = draft.arrivals.pattern === 'serve';
  return {
    ...(draft.frozen ? { cluster: draft.frozen } : { cluster_id: draft.clusterId }),
    name: draft.name,
    notes: draft.notes,
    tags: [...draft.tags],
    model: draft.model,
    weights: weightsOf(draft, model),
    weight_bits: draft.weightBits,
    draft_model: draft.draftModel,
    likely_acceptance: draft.likelyAcceptance,
    strategy: draft.strategy,
    params: { ...draft.params[draft.strategy] },
    workload: {
      ...(!traced && {
        prompt: readsText(model) && draft.promptKind === 'text' && !serves ? draft.prompt : null,
        prompt_tokens:
          readsText(model) && (draft.promptKind === 'length' || serves) ? draft.promptTokens : null,
        ...(!draft.chat && draft.promptKind === 'text' && !serves && { chat: false }),
        new_tokens: generates ? draft.newTokens : 0,
        requests: draft.requests,
      }),
      assumed_tokens: generates ? draft.assumedTokens : 0,
      ...(generates && !serves && !draft.kvCache && { kv_cache: false }),
      ...(generates && samplingFields(draft.sampling)),
      image: model && model.image_rows > 0 ? draft.image : null,
      ...arrivalFields(draft.arrivals),
      token_limit_s: draft.tokenLimit_s,
    },
    scenario: draft.scenario,
    dilation: draft.dilationKind === 'fixed' ? draft.dilation : draft.dilationKind,
    compute_model: draft.computeModel,
    failover: draft.failover,
    silence_s: draft.silence_s,
    seed: draft.seed,
  };
}

/** The draft that repeats an earlier run: `toRequest` of it is that run's request. */
export function fromRequest(request: RunRequest, scenario?: Scenario): Draft {
  const { workload, dilation } = request;
  return {
    clusterId: request.cluster_id ?? null,
    frozen: request.cluster ?? null,
    model: request.model,
    randomWeights: request.weights === 'random',
    weightBits: request.weight_bits ?? null,
    draftModel: request.draft_model ?? null,
    likelyAcceptance: request.likely_acceptance ?? FIRST_DRAFT.likelyAcceptance,
    strategy: request.strategy,
    params: { [request.strategy]: request.params },
    promptKind: workload.prompt === null || workload.prompt === undefined ? 'length' : 'text',
    prompt: workload.prompt ?? '',
    chat: workload.chat ?? true,
    promptTokens: workload.prompt_tokens ?? FIRST_DRAFT.promptTokens,
    image: workload.image ?? null,
    newTokens: workload.new_tokens ?? FIRST_DRAFT.newTokens,
    assumedTokens: workload.assumed_tokens ?? 0,
    kvCache: workload.kv_cache ?? true,
    sampling: {
      temperature: workload.temperature ?? 0,
      topP: workload.top_p ?? FIRST_SAMPLING.topP,
      topK: workload.top_k ?? FIRST_SAMPLING.topK,
    },
    requests: workload.requests ?? 1,
    arrivals: arrivalsOf(request),
    scenario: scenario ?? request.scenario ?? { changes: [] },
    dilationKind: typeof dilation === 'number' ? 'fixed' : dilation,
    dilation: typeof dilation === 'number' ? dilation : FIRST_DRAFT.dilation,
    computeModel: request.compute_model ?? null,
    failover: request.failover ?? 'replan',
    silence_s: request.silence_s ?? FIRST_DRAFT.silence_s,
    tokenLimit_s: workload.token_limit_s ?? null,
    seed: request.seed,
    name: request.name ?? '',
    notes: request.notes ?? '',
    tags: request.tags ?? [],
  };
}

/** The stored cluster to start with: the one with id `requested`, else the demo cluster, else the first. */
export function firstCluster(
  clusters: readonly { id: number; name: string }[],
  requested: number | null,
): number | null {
  const has = (id: number | null) => clusters.some((row) => row.id === id);
  if (requested !== null && has(requested)) return requested;
  return (clusters.find((row) => row.name === 'lab-3') ?? clusters[0])?.id ?? null;
}
