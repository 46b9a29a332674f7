/** The names of a run's predictions: their keys in words, so that pages, exports and the command line agree. */
import type { Predictions } from '@/api/types';

export function nameOf(key: keyof Predictions): string {
  return `predicted ${key.replaceAll('_', ' ')}`;
}
