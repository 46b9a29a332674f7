/** Units for input fields, and conversion between a number in a unit and its SI value. */

export interface Unit {
  label: string;
  factor: number;
}

/** Units from small to large. */
export type Quantity = readonly [Unit, ...Unit[]];

const scaled = (unit: string, prefixes: readonly (readonly [string, number])[]): Quantity =>
  prefixes.map(([prefix, factor]) => ({ label: prefix + unit, factor })) as unknown as Quantity;

export const BIT_RATE = scaled('bit/s', [
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
]);
export const BYTE_RATE = scaled('B/s', [
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
]);
export const SIZE = scaled('B', [
  ['k', 1e3],
  ['M', 1e6],
  ['G', 1e9],
]);
export const FLOP_RATE = scaled('FLOP/s', [
  ['M', 1e6],
  ['G', 1e9],
  ['T', 1e12],
]);
export const TIME: Quantity = [
  { label: 'µs', factor: 1e-6 },
  { label: 'ms', factor: 1e-3 },
  { label: 's', factor: 1 },
];
export const TIME_PER_BYTE: Quantity = [
  { label: 'ns/B', factor: 1e-9 },
  { label: 'µs/B', factor: 1e-6 },
];
export const ENERGY_PER_BYTE: Quantity = [
  { label: 'nJ/B', factor: 1e-9 },
  { label: 'µJ/B', factor: 1e-6 },
  { label: 'J/B', factor: 1 },
];
export const POWER: Quantity = [{ label: 'W', factor: 1 }];
export const DOLLARS: Quantity = [{ label: '$', factor: 1 }];
export const ROWS: Quantity = [{ label: 'rows', factor: 1 }];
export const FACTOR: Quantity = [{ label: '×', factor: 1 }];
export const PERCENT: Quantity = [{ label: '%', factor: 0.01 }];

/** The largest unit in which the value is at least one; the smallest for smaller ones. */
export function unitFor(value: number, quantity: Quantity): Unit {
  const fitting = quantity.filter((unit) => Math.abs(value) >= unit.factor * (1 - 1e-12));
  if (value === 0) return quantity[Math.floor(quantity.length / 2)] ?? quantity[0];
  return fitting.at(-1) ?? quantity[0];
}

/** SI value → number shown in `unit`, rounded to 12 digits. */
export function fromSI(value: number, unit: Unit): number {
  return Number((value / unit.factor).toPrecision(12));
}

/** Number typed in `unit` → SI value, rounded to 12 digits. */
export function toSI(amount: number, unit: Unit): number {
  return Number((amount * unit.factor).toPrecision(12));
}
