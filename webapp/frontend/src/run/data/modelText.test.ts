import { expect, it } from 'vitest';
import { modelText } from './modelText';

const run = (weight_bits: number, activation_bits?: 0 | 8) => ({
  model: 'tiny-llama',
  spec: { model: { weight_bits, activation_bits } },
});

it('names the bits of a model where they are not those of its own numbers', () => {
  expect(modelText(run(0))).toBe('tiny-llama');
  expect(modelText(run(4))).toBe('tiny-llama (4-bit weights)');
  expect(modelText(run(8, 8))).toBe('tiny-llama (8-bit weights and activations)');
  expect(modelText({ model: 'unreadable', spec: null })).toBe('unreadable');
});
