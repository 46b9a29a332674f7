import type { RunReport } from '@/api/types';

type Part = RunReport['fidelity']['native'][number];

export type Times = Pick<Part, 'measured_s' | 'predicted_s'>;

/** The parts of the critical path together; waiting lies beside the path. */
export function wholePath(parts: readonly Part[]): Times {
  const onPath = parts.filter((part) => part.name !== 'wait');
  return {
    measured_s: onPath.reduce((sum, part) => sum + part.measured_s, 0),
    predicted_s: onPath.reduce((sum, part) => sum + part.predicted_s, 0),
  };
}

/** predicted / measured - 1, in whole per cent. */
export function offPercent({ predicted_s, measured_s }: Times): string {
  if (measured_s <= 0) return '–';
  const off = Math.round((predicted_s / measured_s - 1) * 100);
  return `${off < 0 ? '−' : '+'}${Math.abs(off)} %`;
}
