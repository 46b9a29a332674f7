/** Whether the server would refuse the same run again. */
import { ApiError } from '@/api/client';

/** Whether the run as it is cannot be: it is not valid (422), or no plan is possible (409 about the strategy). Where
 * the server could not answer, it may be able to another time. */
export function isRefusedForGood(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.status === 422 || (error.status === 409 && error.about('strategy') !== undefined);
}

/** Sections of the form in their order, and the fields of the request that each is about. */
const SECTIONS = {
  Cluster: ['cluster_id', 'cluster'],
  Model: ['model', 'weights', 'weight_bits', 'activation_bits', 'draft_model', 'likely_acceptance'],
  Strategy: ['strategy'],
  Plan: ['params.plan'],
  Parameters: ['params'],
  Execution: [
    'dilation',
    'board_links',
    'compute_model',
    'seed',
    'failover',
    'silence_s',
    'workload.token_limit_s',
  ],
  Workload: ['workload'],
  Scenario: ['scenario'],
  Labels: ['tags', 'notes', 'name'],
} as const satisfies Record<string, readonly string[]>;

export type SectionTitle = keyof typeof SECTIONS;

/** Those of them that stand beside their input, where the form shows what is wrong with them. */
const WORKLOAD =
  'prompt image prompt_tokens new_tokens assumed_tokens kv_cache requests rate_per_s users think_s max_batch scheduler chunk_tokens ' +
  'temperature top_p top_k slo_first_token_s slo_per_token_s token_limit_s';
const INPUTS = WORKLOAD.split(' ')
  .map((field) => `workload.${field}`)
  .concat('draft_model', 'dilation', 'seed', 'silence_s', 'tags', 'notes', 'name');

export interface Refusal {
  section: SectionTitle;
  /** What the section itself says; null where an input in it does. */
  message: string | null;
}

/** The section that says why the server refuses the run; null if that is about no part of the form. A plan made by
 * hand is to blame itself if the strategy cannot follow it; its editor says why. */
export function refusalIn(error: unknown, byHand: boolean, params: readonly string[]): Refusal | null {
  if (!(error instanceof ApiError)) return null;
  const inputs = [...INPUTS, ...params.map((name) => `params.${name}`)];
  for (const section of Object.keys(SECTIONS) as SectionTitle[]) {
    const message = SECTIONS[section].map((path) => error.about(path)).find(Boolean);
    if (!message) continue;
    if (byHand && (section === 'Strategy' || section === 'Plan')) return { section: 'Plan', message: null };
    const isBeside = inputs.some((path) => error.about(path) === message);
    return { section, message: isBeside ? null : message };
  }
  return null;
}
