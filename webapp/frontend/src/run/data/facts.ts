/** Reads facts of marks. A fact is JSON whose type its mark defines; these functions check it. */
import type { Mark, Plan, Recovery } from '@/api/types';

export type Facts = Mark['facts'];

/** The fact as a finite number, else `otherwise`. */
export function number(fact: unknown, otherwise: number): number {
  return typeof fact === 'number' && Number.isFinite(fact) ? fact : otherwise;
}

/** The fact as a number (also an infinite one), else null. */
export function numberOrNull(fact: unknown): number | null {
  return typeof fact === 'number' ? fact : null;
}

/** The fact as a string; '' if there is none. */
export function text(fact: unknown): string {
  return fact === null || fact === undefined ? '' : String(fact);
}

/** The fact as a list of numbers; [] if it is no list. */
export function numbers(fact: unknown): number[] {
  return Array.isArray(fact) ? fact.map(Number) : [];
}

/** The fact as a list of numbers with gaps; [] if it is no list. */
export function numbersOrNull(fact: unknown): (number | null)[] {
  return Array.isArray(fact) ? fact.map(numberOrNull) : [];
}

/** The fact as lists of numbers, such as [device, start, stop]; [] if it is no list. */
export function rows(fact: unknown): number[][] {
  return Array.isArray(fact) ? fact.map(numbers) : [];
}

const FAILURES: readonly Recovery['how'][] = ['killed', 'frozen', 'unreachable', 'joined'];

/** How a device failed; a device that joined has no such fact. */
export function failure(fact: unknown): Recovery['how'] {
  return FAILURES.find((how) => how === fact) ?? 'joined';
}

/** Whether the fact is a plan, as `replanned` carries it. */
export function isPlan(fact: unknown): fact is Plan {
  return (
    typeof fact === 'object' &&
    fact !== null &&
    'holdings' in fact &&
    Array.isArray(fact.holdings) &&
    'work' in fact &&
    Array.isArray(fact.work) &&
    'layout' in fact &&
    typeof fact.layout === 'object' &&
    fact.layout !== null &&
    'kind' in fact.layout
  );
}
