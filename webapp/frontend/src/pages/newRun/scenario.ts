/** Scenarios: changes of the cluster at set times. */
import type { Scenario } from '@/api/types';

export function linksOf(scenario: Scenario): string[] {
  return [...new Set(scenario.changes.flatMap((change) => ('link' in change ? [change.link] : [])))];
}

/** The same changes, with those of links applied to `link`. */
export function onLink(scenario: Scenario, link: string): Scenario {
  return { changes: scenario.changes.map((change) => ('link' in change ? { ...change, link } : change)) };
}
