/** Metrics and parameters as text, by their unit or by the unit that their name ends in. */
import { bytes, human, joules, percent, rate, seconds, three } from './units';

/** A metric with its SI unit as the server names it; "–" if there is none. */
export function metricText(value: number | null, unit: string): string {
  if (value === null) return '–';
  if (unit === 's') return seconds(value);
  if (unit === 'B') return bytes(value);
  if (unit === '1/s') return `${three(value)} /s`;
  if (unit === 'J') return joules(value);
  if (unit === 'nat') return value === 0 ? '0' : `${three(value)} nats`;
  if (unit === 'fraction') return percent(value);
  if (unit === '') return value === 0 ? '0' : value.toExponential(1);
  return human(value, unit);
}

/** A value on an axis or in a table; a number without a unit is a count, not a small error. */
export function quantityText(value: number, unit: string): string {
  return unit === '' ? three(value) : metricText(value, unit);
}

/** A parameter as text, with the unit that its name ends in; false, 0 and "" are values. */
export function paramText(path: string, value: unknown): string {
  if (value === null || value === undefined) return '–';
  if (value === '') return '""';
  if (typeof value === 'number') {
    if (path.endsWith('bit_per_s')) return rate(value);
    if (path.endsWith('flop_per_s')) return human(value, 'FLOP/s');
    if (path.endsWith('byte_per_s')) return human(value, 'B/s');
    if (path.endsWith('_bytes')) return bytes(value);
    if (path.endsWith('_s')) return seconds(value);
    return String(value);
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
