/** Marks in words, and which of them are changes of the cluster or of the plan. */
import type { Direction, Mark } from '@/api/types';
import { namedWords } from '@/format/links';
import { bytes, human, percent, rate, seconds, three } from '@/format/units';
import { type Facts, text } from './facts';

/** A change of the cluster or of the plan: a marked moment on every chart. */
export interface Injection {
  time_s: number;
  name: string;
  /** What changed and to what, in a few words. */
  label: string;
  /** Who made it; '' for a change of the scenario and for what the run did by itself. */
  by: string;
}

/** Marks that the event log leaves out: too many, or shown elsewhere. */
export const QUIET_MARKS = new Set([
  'token_emitted',
  'memory',
  'decided',
  'experts_used',
  'heads',
  'reloaded',
  'request_finished',
  'request_arrived',
  'request_begun',
]);

/** Marks of strategies, for their views. */
export const METHOD_MARKS = new Set([
  'promoted',
  'copied',
  'copies_lost',
  'experts_used',
  'threshold',
  'kv_transfer',
  'unpinned',
  'recomputed',
  'reallocated',
  'heads_recomputed',
  'all_heads_pruned',
  'repartitioned',
]);

/** Marks that become an `Injection`. */
const INJECTIONS = new Set([
  'link_changed',
  'link_down',
  'link_up',
  'device_lost',
  'device_frozen',
  'device_joined',
  'device_changed',
  'replanned',
  'promoted',
]);

/** The mark as a change; null if it is none. */
export function injectionOf(mark: Mark): Injection | null {
  if (!INJECTIONS.has(mark.name)) return null;
  return { time_s: mark.time_s, name: mark.name, label: describeMark(mark), by: text(mark.facts['by']) };
}

/** One line for the event log and for a marker. */
export function describeMark(mark: Mark): string {
  const { facts } = mark;
  const link = namedWords(text(facts['link']));
  const device = mark.device || text(facts['device']);
  switch (mark.name) {
    case 'link_changed':
      return `${namedWords(text(facts['link']), wayOf(facts))} ${conditions(facts)}`;
    case 'link_down':
      return `${link} cut`;
    case 'link_up':
      return `${link} restored`;
    case 'device_changed':
      return `${device} takes ${three(Number(facts['factor']))} × as long`;
    case 'device_lost':
      return `${device} failed`;
    case 'device_frozen':
      return `${device} frozen`;
    case 'device_joined':
      return `${device} joined`;
    case 'loss_detected':
      return `failure of ${device} detected${facts['how'] ? `: ${text(facts['how'])}` : ''}`;
    case 'promoted':
      return `backup took over (epoch ${text(facts['epoch'])})`;
    case 'request_accepted':
      return `request ${text(facts['request'])} of ${text(facts['by']) || 'somebody'} accepted, ${text(facts['prompt_tokens'])} tokens`;
    case 'request_cancelled':
      return `request ${text(facts['request'])}: ${text(facts['reason']) || 'cancelled'}`;
    case 'service_ended':
      return text(facts['reason']);
    case 'replanned':
      return `new plan: ${text(facts['reason'])}`;
  }
  return [mark.name.replaceAll('_', ' '), link || device, others(facts)].filter(Boolean).join(' · ');
}

function wayOf({ direction }: Facts): Direction {
  return direction === 'forward' || direction === 'backward' ? direction : 'both';
}

function conditions(facts: Facts): string {
  const parts = ['bit_per_s', 'delay_s', 'jitter_s', 'loss_frac'].flatMap((key) =>
    typeof facts[key] === 'number' ? [quantity(key, facts[key])] : [],
  );
  return parts.join(', ') || 'changed';
}

/** The facts without a place of their own in a sentence; nested ones are for the views. */
function others(facts: Facts): string {
  return Object.entries(facts)
    .filter(([key, value]) => !['link', 'device', 'by'].includes(key) && isPlain(value))
    .map(([key, value]) => quantity(key, value))
    .join(', ');
}

function isPlain(value: unknown): boolean {
  return value !== null && value !== '' && typeof value !== 'object';
}

function quantity(key: string, value: unknown): string {
  if (key === 'bit_per_s' && typeof value === 'number') return rate(value);
  if (key === 'loss_frac' && typeof value === 'number') return `packet loss ${percent(value)}`;
  return namedQuantity(key, value).join(' ');
}

const UNITS: readonly [suffix: string, format: (value: number) => string][] = [
  ['bit_per_s', rate],
  ['_bytes', bytes],
  ['_frac', percent],
  ['coverage', percent],
  ['_s', seconds],
];

/** A key such as `decision_s` and its value in words: `['decision', '12 ms']`. */
export function namedQuantity(key: string, value: unknown): [name: string, text: string] {
  const words = key.replaceAll('_', ' ');
  if (typeof value !== 'number') return [words, String(value)];
  const unit = UNITS.find(([suffix]) => key.endsWith(suffix));
  if (!unit) return [words, Math.abs(value) >= 1e5 ? human(value, '').trim() : three(value)];
  const [suffix, format] = unit;
  const name = suffix === 'coverage' ? key : key.slice(0, -suffix.length);
  return [name.replaceAll('_', ' ').trim(), format(value)];
}
