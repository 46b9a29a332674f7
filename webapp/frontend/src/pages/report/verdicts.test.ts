import { describe, expect, it } from 'vitest';
import type { Correctness, Fidelity } from '@/api/types';
import { correctLines, correctTitle, validLines, validTitle, withUnitsBound } from './verdicts';

const correctness: Correctness = {
  checked: true,
  ok: true,
  lossy: false,
  prompt_identical: null,
  token_identical: true,
  max_abs_error: 2.5e-6,
  max_rel_error: 1e-6,
  kl_mean: null,
  top1_agreement: null,
  rounding_error: null,
  error_over_rounding: null,
  flipped_tokens: null,
  why: '',
};
const fidelity: Fidelity = {
  valid: true,
  compute_error_mean: 0.004,
  compute_error_p95: 0.01,
  model_error_mean: 0.002,
  model_error_p95: 0.006,
  compared_frac: 1,
  latency_error: -0.03,
  latency_limit: 0.1,
  link_error_max: 0.02,
  late_frac: 0,
  enough_dilation: null,
  backend: 'tc',
  native: [],
  why: [],
  notes: [],
};

describe('the verdict on correctness', () => {
  it('is correct, not correct, lossy, or not checked', () => {
    expect(correctTitle(correctness)).toBe('Correct');
    expect(correctTitle({ ...correctness, ok: false })).toBe('Not correct');
    expect(correctTitle({ ...correctness, ok: null, lossy: true })).toBe(
      'Lossy: this strategy may change the output',
    );
    expect(correctTitle({ ...correctness, ok: null, checked: false })).toBe('Correctness not checked');
  });

  it('says the figures that there are, then the reason', () => {
    expect(correctLines(correctness)).toEqual([
      'The run generated the same tokens as transformers on one device.',
      'The largest relative error of a logit is 1.0e-6, the largest absolute error 2.5e-6.',
    ]);
    const lossy = { ...correctness, token_identical: false, max_rel_error: null, why: 'It prunes heads.' };
    expect(correctLines({ ...lossy, top1_agreement: 0.9, kl_mean: 0.0123 })).toEqual([
      'Given the same tokens before it, the reference chooses the same token in 90 % of cases.',
      'The mean KL divergence from the reference is 0.0123 nats per token.',
      'The run generated other tokens than transformers on one device.',
      'It prunes heads.',
    ]);
    const rounded = { ...correctness, error_over_rounding: 0.973, why: 'one token differs at a near-tie' };
    expect(correctLines(rounded).slice(2)).toEqual([
      'The error is 0.97 times the reference’s own rounding error.',
      'One token differs at a near-tie.',
    ]);
  });
});

describe('the verdict on fidelity', () => {
  it('compares operations with the device model and the latency with its prediction', () => {
    expect(validTitle(fidelity)).toBe('Valid');
    expect(validLines(fidelity)).toEqual([
      'Operation times differ from the device model by 0.2 % on average, 95 % of them by at most 0.6 %.',
      'The latency is 3 % below its prediction; the limit is 10 %.',
      'This host finished operations 0.4 % late on average, 95 % of them by at most 1 %.',
      'None of the operations overran their time.',
      'Every measured link carries its set rate to within 2 %.',
      'Links are shaped by tc.',
    ]);
  });

  it('says why a run is not valid, and what was not judged', () => {
    const wrong: Fidelity = {
      ...fidelity,
      valid: false,
      compute_error_mean: null,
      model_error_mean: null,
      latency_error: null,
      latency_limit: null,
      link_error_max: null,
      late_frac: 0.5,
      backend: '',
      why: ['operations took 1.5 times as long as the model says.'],
      notes: ['The latency is not judged.'],
    };
    expect(validTitle(wrong)).toBe('Not valid');
    expect(validLines(wrong)).toEqual([
      'Operations took 1.5 times as long as the model says.',
      '50 % of the operations overran their time.',
      'The latency is not judged.',
    ]);
  });

  it.each([
    [0.00271, 2.2e-9, '95 % of the operation times agree with the device model; the mean error is 0.27 %.'],
    [4e-5, 2.2e-9, 'Operation times agree with the device model.'],
    [
      0.00271,
      1e-4,
      'Operation times differ from the device model by 0.27 % on average, 95 % of them by at most 0.01 %.',
    ],
    [0.00271, null, 'Operation times differ from the device model by 0.27 % on average.'],
  ])('gives no percentage that is 0: mean %d, 95 %% %d', (model_error_mean, model_error_p95, line) => {
    expect(validLines({ ...fidelity, model_error_mean, model_error_p95 })[0]).toBe(line);
  });

  it('calls operations late, and a latency off, only where they are', () => {
    const exact = { ...fidelity, latency_error: -1e-6, compute_error_mean: 1e-6, compute_error_p95: 0 };
    expect(validLines(exact).slice(1, 3)).toEqual([
      'The latency equals its prediction; the limit is 10 %.',
      'This host finished operations on time.',
    ]);
    expect(validLines({ ...fidelity, compute_error_p95: 0 })[2]).toBe(
      'This host finished 95 % of the operations on time; all together were 0.4 % late on average.',
    );
  });

  it('is not measured in the simulated world', () => {
    expect(validTitle({ ...fidelity, valid: null })).toBe('Fidelity not measured');
  });
});

describe('a number and its unit', () => {
  it('stay on one line, and no other word is bound to a number', () => {
    const bound = (text: string) => withUnitsBound(text).replaceAll('\u00a0', '_');
    expect(bound('by 0.2 % on average, 95 % of them by at most 1.5 ms.')).toBe(
      'by 0.2_% on average, 95_% of them by at most 1.5_ms.',
    );
    expect(bound('is 0.01 nats per token at 10 Mbit/s, 3 MB')).toBe(
      'is 0.01_nats per token at 10_Mbit/s, 3_MB',
    );
    expect(bound('in 3 of 4 cases, 2 stages and 16 Blocks')).toBe('in 3 of 4 cases, 2 stages and 16 Blocks');
  });
});
