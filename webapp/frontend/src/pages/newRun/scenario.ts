/** Changes at set times, and which links they are about. */
import type { Scenario } from '@/api/types';

export function linksOf(scenario: Scenario): string[] {
  return [...new Set(scenario.changes.flatMap((change) => ('link' in change ? [change.link] : [])))];
}

/** The same changes, those of links on `link`: a trace may drive any. */
export function onLink(scenario: Scenario, link: string): Scenario {
  return { changes: scenario.changes.map((change) => ('link' in change ? { ...change, link } : change)) };
}
