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
  if (unit === '') return three(value);
  return human(value, unit);
}

/** " ± 0.4 ms": half of an interval around a mean, for behind it; its own unit says nothing where it is 0. */
export function marginText(margin: number, text: (value: number) => string): string {
  return ` ± ${margin === 0 ? '0' : text(margin)}`;
}

/** A parameter as text, with the unit that its name ends in; false, 0 and "" are values. */
export function paramText(path: string, value: unknown, digits = 3): string {
  if (value === null || value === undefined) return '–';
  if (value === '') return '""';
  if (typeof value === 'number') {
    if (path.endsWith('bit_per_s')) return rate(value, digits);
    if (path.endsWith('flop_per_s')) return human(value, 'FLOP/s', digits);
    if (path.endsWith('byte_per_s')) return human(value, 'B/s', digits);
    if (path.endsWith('_per_s')) return `${three(value, digits)} /s`;
    if (path.endsWith('_bytes')) return bytes(value, digits);
    if (path.endsWith('_s')) return seconds(value, digits);
    return String(value);
  }
  if (typeof value === 'string') return value;
  return typeof value === 'object' ? inWords(value, digits) : String(value);
}

/** A list or an object as a person reads it: "none", "1, 2", "device desk, layers 4; device window, layers 2". */
function inWords(value: object, digits: number): string {
  if (Array.isArray(value)) {
    const apart = value.some((item) => typeof item === 'object') ? '; ' : ', ';
    return value.length > 0 ? value.map((item) => paramText('', item, digits)).join(apart) : 'none';
  }
  const parts = Object.entries(value).filter(([, item]) => item !== null && item !== undefined);
  const words = parts.map(([name, item]) => `${fieldText(name)} ${paramText(name, item, digits)}`);
  return words.length > 0 ? words.join(', ') : 'none';
}

/** A field's name in words, without its unit, which the number has. */
export const fieldText = (field: string) =>
  field === 'bit_per_s' ? 'rate' : field.replace(/_(bytes|s)$/, '').replaceAll('_', ' ');

/** A number has no more significant digits. */
const MOST_DIGITS = 17;

/** Values of one parameter as texts that are equal only where the values are: numbers get as many digits as tell them
 * apart, and texts that read like another value are quoted. */
export function paramTexts(path: string, values: readonly unknown[]): string[] {
  const different = new Set(values.map(keyOf)).size;
  const tells = (texts: readonly string[]) => new Set(texts).size === different;
  const numbers = values.filter((value) => typeof value === 'number');
  let digits = 3;
  while (digits < MOST_DIGITS && !isToldBy(numbers, (value) => paramText(path, value, digits))) digits += 1;
  const texts = values.map((value) => paramText(path, value, digits));
  if (tells(texts)) return texts;
  const others = new Set(texts.filter((_, at) => typeof values[at] !== 'string'));
  const some = texts.map((text, at) =>
    typeof values[at] === 'string' && others.has(text) ? JSON.stringify(values[at]) : text,
  );
  if (tells(some)) return some;
  const quoted = texts.map((text, at) =>
    typeof values[at] === 'string' ? JSON.stringify(values[at]) : text,
  );
  return tells(quoted) ? quoted : values.map(keyOf);
}

const isToldBy = (values: readonly number[], textOf: (value: number) => string) =>
  new Set(values.map(textOf)).size === new Set(values).size;

/** What is equal for equal values alone; a missing value is null. */
const keyOf = (value: unknown): string => JSON.stringify(value ?? null);
