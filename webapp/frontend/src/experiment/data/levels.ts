/** Values of a factor as a person types them: a list of numbers in one unit, or a range. */
import { fromSI, type Quantity, toSI, type Unit, unitFor } from '@/format/quantities';

/** A list of values in SI, or why the text is none. */
export type Levels = { values: number[]; problem: null } | { values: null; problem: string };

const SEPARATORS = /[\s,;]+/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
/** More values than this in one factor are a mistake of typing. */
const MOST = 200;

/** "10, 50, 100" in Mbit/s → [1e7, 5e7, 1e8]; each number once, in the order typed. */
export function parseLevels(text: string, unit: Unit, { whole = false, min = 0 } = {}): Levels {
  const words = text.split(SEPARATORS).filter((word) => word !== '');
  if (words.length === 0) return refused('Give at least one value.');
  if (words.length > MOST) return refused(`${words.length} values are too many: at most ${MOST}.`);
  const values: number[] = [];
  for (const word of words) {
    if (!NUMBER.test(word)) return refused(`“${word}” is no number: write values like 10, 50, 100.`);
    const value = toSI(Number(word), unit);
    if (whole && !Number.isInteger(value)) return refused(`${word} is no whole number.`);
    if (value < min) return refused(`${word} is too small: the least is ${fromSI(min, unit)}.`);
    if (values.includes(value)) return refused(`${word} is there twice.`);
    values.push(value);
  }
  return { values, problem: null };
}

const refused = (problem: string): Levels => ({ values: null, problem });

export function levelsText(values: readonly number[], unit: Unit): string {
  return values.map((value) => String(fromSI(value, unit))).join(', ');
}

/** The unit in which the smallest of the values is at least one. */
export function unitOf(values: readonly number[], quantity: Quantity): Unit {
  return unitFor(Math.min(...values.filter((value) => value > 0)), quantity);
}

/**
 * `count` values from `low` to `high`, both included, evenly or by equal ratios. Those between are rounded to two
 * digits, whole ones to integers; equal ones are left out.
 */
export function spread(
  low: number,
  high: number,
  count: number,
  { log = true, whole = false } = {},
): number[] {
  if (count < 2 || low === high) return [low];
  const between = Array.from({ length: count }, (_, index) => {
    const share = index / (count - 1);
    if (index === 0) return low;
    if (index === count - 1) return high;
    const value = log && low > 0 ? low * (high / low) ** share : low + (high - low) * share;
    return whole ? Math.round(value) : Number(value.toPrecision(2));
  });
  return [...new Set(between)];
}
