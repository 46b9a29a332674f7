/** The model of a run, in the bits in which it is computed. */
import type { RunDetail } from '@/api/types';

/** `tiny-llama (8-bit weights)`; the name alone where the numbers are those of the model's dtype. */
export function modelText({ model, spec }: Pick<RunDetail, 'model'> & { spec: Bits | null }): string {
  const bits = spec?.model.weight_bits;
  if (!bits) return model;
  return `${model} (${bits}-bit weights${spec.model.activation_bits ? ' and activations' : ''})`;
}

interface Bits {
  model: Pick<RunDetail['spec']['model'], 'weight_bits' | 'activation_bits'>;
}
