/** The parameter `plan`: how a person divides the model. */
import type { PlanByHand } from '@/api/types';

/** The plan that a parameter means; null if there is none. */
export function fromParam(value: unknown): PlanByHand | null {
  const devices = typeof value === 'object' && value !== null && 'devices' in value ? value.devices : null;
  const reads =
    Array.isArray(devices) &&
    devices.length > 0 &&
    devices.every((one) => typeof one === 'object' && one !== null && typeof one.device === 'string');
  return reads ? (value as PlanByHand) : null;
}

/** The shares in one line: "desk 6 layers, shelf 2 layers". */
export function inWords(plan: PlanByHand): string {
  const units = ['layers', 'heads', 'columns', 'experts', 'rows'] as const;
  return plan.devices
    .map((share) => {
      const amounts = units.flatMap((unit) => (share[unit] ? [`${share[unit]} ${unit}`] : []));
      return `${share.device} ${amounts.join(' and ') || 'nothing'}`;
    })
    .join(', ');
}
