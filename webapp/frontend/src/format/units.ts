/** Formats quantities: three significant digits (more where asked), an SI prefix and the unit. No other file formats
 * them. */

const PREFIXES = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const;

/** At most three significant digits, without trailing zeros: 1234 → "1230", 0.5 → "0.5". */
export function three(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return '–';
  if (value === 0) return '0';
  const rounded = Number(value.toPrecision(digits));
  return Math.abs(rounded) >= 1e-4 ? String(rounded) : rounded.toExponential(digits - 2);
}

/** `human(5e8, 'bit/s')` → "500 Mbit/s". */
export function human(value: number, unit: string, digits = 3): string {
  for (const [factor, prefix] of PREFIXES) {
    if (Math.abs(value) >= factor * 0.9995) return `${three(value / factor, digits)} ${prefix}${unit}`;
  }
  return `${three(value, digits)} ${unit}`;
}

export const rate = (bitPerS: number, digits = 3) => human(bitPerS, 'bit/s', digits);
export const bytes = (count: number, digits = 3) => human(count, 'B', digits);
export const flopRate = (flopPerS: number) => human(flopPerS, 'FLOP/s');

/** `seconds(0.00123)` → "1.23 ms". */
export function seconds(value: number, digits = 3): string {
  const size = Math.abs(value);
  if (value === 0 || size >= 0.9995) return `${three(value, digits)} s`;
  return size >= 0.9995e-3 ? `${three(value * 1e3, digits)} ms` : `${three(value * 1e6, digits)} µs`;
}

/** The time of an output token after the first; a dash where there is none, which reports have as 0. */
export const perToken = (value_s: number): string => (value_s > 0 ? seconds(value_s) : '–');

/** `joules(0.00123)` → "1.23 mJ". */
export function joules(value: number): string {
  const size = Math.abs(value);
  if (value === 0 || size >= 0.9995) return human(value, 'J');
  return size >= 0.9995e-3 ? `${three(value * 1e3)} mJ` : `${three(value * 1e6)} µJ`;
}

/** How long something takes, roughly: "0.4 s", "12 s", "6 min", "2.5 h". */
export function duration(value_s: number): string {
  if (value_s < 9.5) return `${Number(value_s.toPrecision(value_s < 1 ? 1 : 2))} s`;
  if (value_s < 99.5) return `${Math.round(value_s)} s`;
  if (value_s < 99.5 * 60) return `${Math.round(value_s / 60)} min`;
  return `${Number((value_s / 3600).toPrecision(2))} h`;
}

export const percent = (fraction: number) => `${three(fraction * 100)} %`;

/** A difference with its sign, to a tenth of a percent: "+5.0 %", "−0.3 %", "0.0 %". */
export function signedPercent(fraction: number): string {
  const text = Math.abs(fraction * 100).toFixed(1);
  return `${Number(text) === 0 ? '' : fraction > 0 ? '+' : '−'}${text} %`;
}

/** A metric that may be missing. */
export function maybe(value: number | null | undefined, format: (value: number) => string): string {
  return value === null || value === undefined ? '–' : format(value);
}

/** "2 ms to 3 ms"; one text where both ends read the same. */
export function between(low: number, high: number, format: (value: number) => string): string {
  const [from, to] = [format(low), format(high)];
  return from === to ? from : `${from} to ${to}`;
}

/** "3 minutes ago"; `now` in milliseconds. */
export function ago(iso: string, now: number): string {
  const past = Math.max(0, (now - Date.parse(iso)) / 1000);
  const steps = [
    [60, 1, 'second'],
    [3600, 60, 'minute'],
    [86400, 3600, 'hour'],
    [Infinity, 86400, 'day'],
  ] as const;
  const [, size, unit] = steps.find(([limit]) => past < limit) ?? steps[3];
  const count = Math.floor(past / size);
  if (unit === 'second' && count < 5) return 'just now';
  return `${count} ${unit}${count === 1 ? '' : 's'} ago`;
}
