/** The two verdicts of a report in sentences: correctness against `transformers`, fidelity against the models. */
import type { Correctness, Fidelity } from '@/api/types';
import { percent } from '@/format/units';
import { capital } from '@/format/words';

export function correctTitle({ checked, ok, lossy }: Correctness): string {
  if (ok !== null) return ok ? 'Correct' : 'Not correct';
  return checked && lossy ? 'Lossy: this strategy may change the output' : 'Correctness not checked';
}

export function correctLines(correctness: Correctness): string[] {
  const { top1_agreement, kl_mean, token_identical, max_rel_error, max_abs_error, why } = correctness;
  const { error_over_rounding, prompt_identical } = correctness;
  const lines: string[] = [];
  if (top1_agreement !== null) {
    lines.push(
      `Given the same tokens before it, the reference chooses the same token in ${percent(top1_agreement)} of cases.`,
    );
  }
  if (kl_mean !== null) {
    const nats = kl_mean === 0 ? '0' : kl_mean.toPrecision(3);
    lines.push(`The mean KL divergence from the reference is ${nats} nats per token.`);
  }
  if (prompt_identical) {
    lines.push('The prompt has the token ids that transformers gives it.');
  }
  if (token_identical !== null) {
    const same = token_identical ? 'the same tokens as' : 'other tokens than';
    lines.push(`The run generated ${same} transformers on one device.`);
  }
  if (max_rel_error !== null) {
    const absolute =
      max_abs_error === null ? '' : `, the largest absolute error ${max_abs_error.toExponential(1)}`;
    lines.push(`The largest relative error of a logit is ${max_rel_error.toExponential(1)}${absolute}.`);
  }
  if (error_over_rounding !== null) {
    lines.push(
      `The error is ${error_over_rounding.toPrecision(2)} times the reference’s own rounding error.`,
    );
  }
  if (correctness.rounded_weights) lines.push(...bitsLines(correctness.rounded_weights));
  return why ? [...lines, asSentence(why)] : lines;
}

/** What the answer lost by weights of fewer bits; all else compares with the rounded weights. */
function bitsLines(found: NonNullable<Correctness['rounded_weights']>): string[] {
  const { bits, tokens, differing_tokens, max_abs_error } = found;
  const lines = [`All of this is about the weights as ${bits} bits round them, in the reference, too.`];
  if (tokens > 0)
    lines.push(
      `With its own weights the model would have chosen ${differing_tokens} of ${tokens} tokens otherwise.`,
    );
  if (max_abs_error !== null && max_abs_error !== undefined)
    lines.push(`The ${bits} bits moved a logit by up to ${max_abs_error.toPrecision(2)}.`);
  return lines;
}

export function validTitle({ valid }: Fidelity): string {
  if (valid === null) return 'Fidelity not measured';
  return valid ? 'Valid' : 'Not valid';
}

/** Why the run is not valid, then one sentence per figure that was measured, then what was not judged. */
export function validLines(fidelity: Fidelity): string[] {
  return [
    ...fidelity.why.map(asSentence),
    ...modelLines(fidelity),
    ...latencyLines(fidelity),
    ...pacingLines(fidelity),
    ...linkLines(fidelity),
    ...fidelity.notes,
  ];
}

/** The command line joins the same reasons, so they begin in lower case, and may have no full stop. */
function asSentence(reason: string): string {
  return capital(/[.!?]$/.test(reason) ? reason : `${reason}.`);
}

function modelLines({ model_error_mean, model_error_p95 }: Fidelity): string[] {
  if (model_error_mean === null) return [];
  const [mean, p95] = [
    errorText(model_error_mean),
    model_error_p95 === null ? null : errorText(model_error_p95),
  ];
  if (mean === NONE) return ['Operation times agree with the device model.'];
  if (p95 === NONE)
    return [`95 % of the operation times agree with the device model; the mean error is ${mean}.`];
  return [`Operation times differ from the device model by ${mean} on average${atMost(p95)}.`];
}

function latencyLines({ latency_error, latency_limit, backend }: Fidelity): string[] {
  if (latency_error === null) return [];
  const off = errorText(Math.abs(latency_error));
  const where = off === NONE ? 'equals' : `is ${off} ${latency_error < 0 ? 'below' : 'above'}`;
  if (latency_limit === null)
    return [
      `The latency ${where} its prediction for ${backend === 'boards' ? 'the drawn cluster' : 'this host'}.`,
    ];
  return [`The latency ${where} its prediction; the limit is ${errorText(latency_limit)}.`];
}

function pacingLines({ compute_error_mean, compute_error_p95, late_frac }: Fidelity): string[] {
  const lines: string[] = [];
  if (compute_error_mean !== null) {
    lines.push(lateText(errorText(compute_error_mean), compute_error_p95));
  }
  if (late_frac !== null) {
    const late = errorText(late_frac);
    lines.push(`${late === NONE ? 'None' : late} of the operations overran their time.`);
  }
  return lines;
}

function lateText(mean: string, compute_error_p95: number | null): string {
  const p95 = compute_error_p95 === null ? null : errorText(compute_error_p95);
  if (mean === NONE) return 'This host finished operations on time.';
  if (p95 === NONE)
    return `This host finished 95 % of the operations on time; all together were ${mean} late on average.`;
  return `This host finished operations ${mean} late on average${atMost(p95)}.`;
}

function linkLines({ link_error_max, backend }: Fidelity): string[] {
  const lines: string[] = [];
  if (link_error_max !== null)
    lines.push(`Every measured link carries its set rate to within ${errorText(link_error_max)}.`);
  if (backend && backend !== 'boards') lines.push(`Links are shaped by ${backend}.`);
  return lines;
}

function atMost(p95: string | null): string {
  return p95 === null ? '' : `, 95 % of them by at most ${p95}`;
}

const NONE = '0 %';

/** A percentage with two digits; errors below 0.005 % are none. */
function errorText(fraction: number): string {
  return Math.abs(fraction) < 5e-5 ? NONE : percent(Number(fraction.toPrecision(2)));
}

/** A space between a number and the unit after it. */
const BEFORE_UNIT = /(?<=\d) (?=(?:%|[nµm]?s|[kMGT]?(?:B|bit\/s|FLOP\/s)|nats?)(?![\w/]))/g;

/** The text with no-break spaces before units: a number and its unit stay on one line. */
export const withUnitsBound = (text: string): string => text.replaceAll(BEFORE_UNIT, '\u00a0');
